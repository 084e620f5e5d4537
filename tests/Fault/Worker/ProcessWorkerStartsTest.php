<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Worker\WorkerContext;

/** Tests workers that do not start, and pools whose own process is killed. */
final class ProcessWorkerStartsTest extends WorkerPoolFaults
{
    use ExhaustionFaults;
    use ParentFaults;
    use StartDeaths;
    use StartFaults;

    protected function context(): WorkerContext
    {
        return WorkerContext::Process;
    }
}
