<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

/** Tests faults while workers start, and faults of the process that owns the pool. */
abstract class WorkerStartFaultsTestCase extends WorkerPoolFaults
{
    use ExhaustionFaults;
    use ParentFaults;
    use StartDeaths;
    use StartFaults;
}
