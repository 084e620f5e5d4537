<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Worker\WorkerContext;

/** The rest of the contract: code that all kinds of workers share, which plain runs test with processes. */
#[Group('full')]
final class ForkExecutorRestTest extends PoolTestCase
{
    use Contract\CarriesValues;
    use Contract\IsCancelled;
    use Contract\IsLeft;
    use Contract\IsShared;
    use Contract\MapsInput;
    use Contract\PullsLazily;
    use Contract\RefusesWhatStays;
    use Contract\RunsTasks;
    use Contract\TellsFailures;
    use SharesPool;

    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}
