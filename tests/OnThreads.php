<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Assert;
use Spindle\Worker\WorkerContext;

/** Runs tests with threads as workers, if PHP supports them. */
trait OnThreads
{
    public static function setUpBeforeClass(): void
    {
        if (!class_exists('parallel\\Runtime')) {
            Assert::markTestSkipped('It needs a thread-safe PHP with ext-parallel, see docs/how-to/run-callables.md');
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
}
