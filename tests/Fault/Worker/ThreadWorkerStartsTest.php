<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Tests\OnThreads;

/** What depends on how threads are started, and on the process that has the pool. */
final class ThreadWorkerStartsTest extends WorkerPoolFaults
{
    use ExhaustionFaults;
    use OnThreads;
    use ParentFaults;
    use StartFaults;
}
