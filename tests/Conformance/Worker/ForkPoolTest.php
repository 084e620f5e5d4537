<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

final class ForkPoolTest extends WorkerPoolContract
{
    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}
