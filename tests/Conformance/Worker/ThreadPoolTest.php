<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Tests\OnThreads;

/** Part of the pool contract that can fail for threads only. ThreadPoolRestTest has the rest. */
final class ThreadPoolTest extends PoolTestCase
{
    use Contract\CarriesOutput;
    use Contract\Closes;
    use Contract\KeepsSecrets;
    use Contract\LimitsTime;
    use Contract\PreparesWorkers;
    use Contract\SurvivesCrashes;
    use OnThreads;

    protected function tellsTasksOfTheirCancellation(): bool
    {
        return false;
    }
}
