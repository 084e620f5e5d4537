<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Tests\OnThreads;

/** Tests faults while threads start, and faults of the process that owns the pool. */
final class ThreadWorkerStartsTest extends WorkerPoolFaults
{
    use ExhaustionFaults;
    use OnThreads;
    use ParentFaults;
    use StartDeaths;
    use StartFaults;
}
