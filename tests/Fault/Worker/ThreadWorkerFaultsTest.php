<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Tests\OnThreads;

/** What depends on how threads are started, heard and ended: by their tasks and by others. */
final class ThreadWorkerFaultsTest extends WorkerPoolFaults
{
    use EndingFaults;
    use ImpostorFaults;
    use OnThreads;
    use TaskFaults;
    use UnrulyTasks;
    use WorkerDeaths;
}
