<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Worker\WorkerContext;

/** Tests tasks that fail, and tasks that harm their worker. */
final class ProcessWorkerFaultsTest extends WorkerPoolFaults
{
    use Floods;
    use InputFaults;
    use ResultSizes;
    use TaskFaults;
    use TransferFaults;
    use UnrulyTasks;

    protected function context(): WorkerContext
    {
        return WorkerContext::Process;
    }
}
