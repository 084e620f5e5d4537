<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Worker\WorkerContext;

/** Contract of code that all kinds of workers share. Quick test runs cover it with processes only. */
#[Group('full')]
final class ForkExecutorRestTest extends PoolTestCase
{
    use Contract\CarriesValues;
    use Contract\IsCancelled;
    use Contract\IsAbandoned;
    use Contract\IsShared;
    use Contract\MapsInput;
    use Contract\PullsLazily;
    use Contract\RefusesUnserializable;
    use Contract\RunsTasks;
    use Contract\ReportsFailures;
    use SharesPool;

    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}
