<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Spindle\Tests\Conformance\Worker\ExecutorTestCase;

/**
 * The complete contract of executors.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait OfExecutors
{
    use CarriesDepth;
    use CarriesValues;
    use HasContext;
    use IsCancelled;
    use IsLeft;
    use IsShared;
    use MapsInput;
    use PullsLazily;
    use RefusesWhatStays;
    use RunsCallables;
    use RunsTasks;
    use StreamsItems;
    use TellsFailures;
}
