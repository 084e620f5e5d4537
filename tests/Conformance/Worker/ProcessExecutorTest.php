<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

final class ProcessExecutorTest extends PoolTestCase
{
    use Contract\OfExecutors;
    use SharesPool;

    protected function context(): WorkerContext
    {
        return WorkerContext::Process;
    }
}
