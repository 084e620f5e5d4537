<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Worker\WorkerContext;

/** Tests faults while forks start, and faults of the process that owns the pool. */
final class ForkWorkerStartsTest extends WorkerPoolFaults
{
    use ExhaustionFaults;
    use ParentFaults;
    use StartDeaths;
    use StartFaults;

    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}
