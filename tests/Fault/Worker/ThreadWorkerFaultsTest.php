<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Tests\OnThreads;

/** Tests faults that depend on how threads start, report and end. */
final class ThreadWorkerFaultsTest extends WorkerPoolFaults
{
    use EndingFaults;
    use ImpostorFaults;
    use OnThreads;
    use TaskFaults;
    use UnrulyTasks;
    use WorkerDeaths;
}
