<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Tests\OnThreads;

/** The rest of the contract: code that all kinds of workers share, which plain runs test with processes. */
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
