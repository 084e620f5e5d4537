<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Worker\WorkerContext;

/** Faults that depend on how forks start, report and end. */
final class ForkWorkerFaultsTest extends WorkerPoolFaults
{
    use EndingFaults;
    use ImpostorFaults;
    use TaskFaults;
    use UnrulyTasks;
    use WorkerDeaths;

    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}
