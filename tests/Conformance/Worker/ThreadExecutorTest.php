<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Tests\OnThreads;

/** What only tasks in threads show of the promises of executors; ThreadExecutorRestTest has the others. */
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
