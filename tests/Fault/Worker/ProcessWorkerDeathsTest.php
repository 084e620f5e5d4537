<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Worker\WorkerContext;

/** Tests workers that are killed, and workers that are ended. */
final class ProcessWorkerDeathsTest extends WorkerPoolFaults
{
    use CancellationFaults;
    use EndingFaults;
    use WorkerDeaths;

    protected function context(): WorkerContext
    {
        return WorkerContext::Process;
    }
}
