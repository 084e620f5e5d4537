<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

final class ForkPoolLifecycleTest extends ExecutorLifecycleContract
{
    protected function create(): WorkerPool
    {
        return new WorkerPool(1, options: new WorkerPoolOptions(context: WorkerContext::Fork));
    }
}
