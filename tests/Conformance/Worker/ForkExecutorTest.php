<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

/** The part of the executor contract that forks can break; ForkExecutorRestTest has the rest. */
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
