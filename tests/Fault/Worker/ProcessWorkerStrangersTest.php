<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Worker\WorkerContext;

/** Tests other processes that talk to a pool or to its workers. */
final class ProcessWorkerStrangersTest extends WorkerPoolFaults
{
    use ImpostorFaults;
    use StrangerFaults;

    protected function context(): WorkerContext
    {
        return WorkerContext::Process;
    }
}
