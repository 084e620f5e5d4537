<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Worker\WorkerContext;

/** What depends on how forks are started, and on the process that has the pool. */
final class ForkWorkerStartsTest extends WorkerPoolFaults
{
    use ExhaustionFaults;
    use ParentFaults;
    use StartFaults;

    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}
