<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Spindle\Tests\Conformance\Worker\ExecutorTestCase;

/**
 * The part of the executor contract that is independent of the kind of worker.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait IndependentOfContext
{
    use CarriesValues;
    use IsCancelled;
    use IsAbandoned;
    use IsShared;
    use MapsInput;
    use PullsLazily;
    use RefusesUnserializable;
    use RunsTasks;
    use ReportsFailures;
}
