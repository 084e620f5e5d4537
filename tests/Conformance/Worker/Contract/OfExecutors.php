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
    use DependsOnContext;
    use IndependentOfContext;
}
