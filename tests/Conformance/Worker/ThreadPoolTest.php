<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Tests\OnThreads;

/** What depends on how threads are started, heard and ended; ThreadPoolRestTest has the other promises of pools. */
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
