<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

/** What depends on how forks are started, heard and ended; ForkPoolRestTest has the other promises of pools. */
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
