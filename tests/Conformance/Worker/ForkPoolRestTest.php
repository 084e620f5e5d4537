<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Worker\WorkerContext;

/** What goes through code that all workers share, and is tested with processes as well. */
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
