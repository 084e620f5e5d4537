<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Worker\WorkerContext;

/** The rest of the contract: code that all kinds of workers share, which plain runs test with processes. */
#[Group('full')]
final class ForkPoolRestTest extends PoolTestCase
{
    use Contract\KnowsClasses;
    use Contract\ReplacesWorkers;
    use Contract\SparesNeighbours;
    use Contract\TriesAgain;

    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}
