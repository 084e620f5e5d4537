<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Tests\OnThreads;

/** Part of the executor contract that can fail for threads only. ThreadExecutorRestTest has the rest. */
final class ThreadExecutorTest extends PoolTestCase
{
    use Contract\HasContext;
    use Contract\RunsCallables;
    use Contract\StreamsItems;
    use OnThreads;
    use SharesPool;

    protected function tellsTasksOfTheirCancellation(): bool
    {
        return false;
    }
}
