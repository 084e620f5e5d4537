<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Worker\WorkerContext;

/** What depends on how forks are started, heard and ended: by their tasks and by others. */
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
