<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Assert;

/**
 * What tests of workers can expect of processes.
 *
 * @phpstan-require-extends \PHPUnit\Framework\TestCase
 */
trait ProcessForEachWorker
{
    /** Or they share one, with its standard error and its signals; what ends one ends all, and of how a thread ends its exit code is not known. */
    protected function hasAProcessForEachWorker(): bool
    {
        return true;
    }

    /** @param string $why without that this can't be had */
    protected function needsAProcessForEachWorker(string $why): void
    {
        if (!$this->hasAProcessForEachWorker()) {
            Assert::markTestSkipped("Threads share a process: {$why}");
        }
    }
}
