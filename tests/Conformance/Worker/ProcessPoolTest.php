<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

final class ProcessPoolTest extends PoolTestCase
{
    use Contract\OfPools;

    protected function context(): WorkerContext
    {
        return WorkerContext::Process;
    }
}
