<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Tests\OnThreads;

/** What goes through code that all workers share, and is tested with processes as well. */
#[Group('full')]
final class ThreadPoolRestTest extends PoolTestCase
{
    use Contract\KnowsClasses;
    use Contract\ReplacesWorkers;
    use Contract\SparesNeighbours;
    use Contract\TriesAgain;
    use OnThreads;

    protected function tellsTasksOfTheirCancellation(): bool
    {
        return false;
    }
}
