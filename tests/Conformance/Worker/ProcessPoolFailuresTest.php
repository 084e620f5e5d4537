<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

/** Contract of a pool for failing tasks and the tasks beside them. */
final class ProcessPoolFailuresTest extends PoolTestCase
{
    use Contract\LimitsTime;
    use Contract\IsolatesTasks;
    use Contract\SurvivesCrashes;
    use Contract\RetriesTasks;

    protected function context(): WorkerContext
    {
        return WorkerContext::Process;
    }
}
