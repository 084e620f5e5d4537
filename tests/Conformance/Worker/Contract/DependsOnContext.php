<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Spindle\Tests\Conformance\Worker\ExecutorTestCase;

/**
 * The part of the executor contract whose result may depend on the kind of worker.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait DependsOnContext
{
    use HasContext;
    use RunsCallables;
    use StreamsItems;
}
