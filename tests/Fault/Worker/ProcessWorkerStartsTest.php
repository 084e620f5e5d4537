<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Worker\WorkerContext;

final class ProcessWorkerStartsTest extends WorkerStartFaultsTestCase
{
    protected function context(): WorkerContext
    {
        return WorkerContext::Process;
    }
}
