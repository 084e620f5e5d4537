<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

final class ThreadPoolTest extends WorkerPoolContract
{
    protected function context(): WorkerContext
    {
        return WorkerContext::Thread;
    }
}
