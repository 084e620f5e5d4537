<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Assert;

/**
 * Tells tests of workers what they can expect of processes.
 *
 * @phpstan-require-extends \PHPUnit\Framework\TestCase
 */
trait ProcessForEachWorker
{
    /**
     * Whether each worker has a process of its own.
     *
     * Workers that share a process share its standard error and signals, and end together. A thread has no exit code.
     */
    protected function hasAProcessForEachWorker(): bool
    {
        return true;
    }

    /** @param string $why reason why the test can not run without that */
    protected function needsAProcessForEachWorker(string $why): void
    {
        if (!$this->hasAProcessForEachWorker()) {
            Assert::markTestSkipped("Threads share a process: {$why}");
        }
    }
}
