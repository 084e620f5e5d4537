<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

/** Tests faults whose effect may depend on the kind of worker. */
abstract class ContextDependentFaultsTestCase extends WorkerPoolFaults
{
    use EndingFaults;
    use ImpostorFaults;
    use TaskFaults;
    use UnrulyTasks;
    use WorkerDeaths;
}
