<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

/** Part of the pool contract that can fail for forks only. ForkPoolRestTest has the rest. */
final class ForkPoolTest extends PoolTestCase
{
    use Contract\CarriesOutput;
    use Contract\Closes;
    use Contract\KeepsSecrets;
    use Contract\LimitsTime;
    use Contract\PreparesWorkers;
    use Contract\SurvivesCrashes;

    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}
