<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

final class ThreadPoolTest extends WorkerPoolContract
{
    public static function setUpBeforeClass(): void
    {
        if (!class_exists('parallel\\Runtime')) {
            self::markTestSkipped('It needs a thread-safe PHP with ext-parallel, see docs/how-to/run-callables.md');
        }
    }

    protected function context(): WorkerContext
    {
        return WorkerContext::Thread;
    }

    protected function hasAProcessForEachWorker(): bool
    {
        return false;
    }

    protected function tellsTasksOfTheirCancellation(): bool
    {
        return false;
    }
}
