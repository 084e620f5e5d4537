<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

/** Part of the executor contract that can fail for forks only. ForkExecutorRestTest has the rest. */
final class ForkExecutorTest extends PoolTestCase
{
    use Contract\HasContext;
    use Contract\RunsCallables;
    use Contract\StreamsItems;
    use SharesPool;

    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}
