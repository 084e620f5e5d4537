<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

/** Contract of a pool for its workers. ProcessPoolFailuresTest has the part for failing tasks. */
final class ProcessPoolTest extends PoolTestCase
{
    use Contract\CarriesOutput;
    use Contract\Closes;
    use Contract\KeepsSecrets;
    use Contract\KnowsClasses;
    use Contract\PreparesWorkers;
    use Contract\ReplacesWorkers;
    use Contract\RunsCodeOfResults;

    protected function context(): WorkerContext
    {
        return WorkerContext::Process;
    }
}
