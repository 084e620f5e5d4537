<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

/** What only tasks in forks show of the promises of executors; ForkExecutorRestTest has the others. */
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
