<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

/** What pools promise of their workers; ProcessPoolFailuresTest has what becomes of tasks that fail. */
final class ProcessPoolTest extends PoolTestCase
{
    use Contract\CarriesOutput;
    use Contract\Closes;
    use Contract\KeepsSecrets;
    use Contract\KnowsClasses;
    use Contract\PreparesWorkers;
    use Contract\ReplacesWorkers;

    protected function context(): WorkerContext
    {
        return WorkerContext::Process;
    }
}
