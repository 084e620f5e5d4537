<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Tests\OnThreads;

/** Contract of code that all kinds of workers share. Quick test runs cover it with processes only. */
#[Group('full')]
final class ThreadPoolRestTest extends PoolTestCase
{
    use Contract\KnowsClasses;
    use Contract\ReplacesWorkers;
    use Contract\IsolatesTasks;
    use Contract\RetriesTasks;
    use Contract\RunsCodeOfResults;
    use OnThreads;

    protected function tellsTasksOfTheirCancellation(): bool
    {
        return false;
    }
}
