<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

final class ProcessExecutorTest extends ContextIndependentExecutorContract
{
    use Contract\CarriesDepth;
    use Contract\DependsOnContext;

    protected function context(): WorkerContext
    {
        return WorkerContext::Process;
    }
}
