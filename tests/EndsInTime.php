<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;

/**
 * Turns a hang into a failure of the test that hangs. It needs ext-pcntl; without that, a hang stays a hang.
 *
 * The exception is thrown wherever the test is at that moment, which may be in a fiber that catches it. So it is thrown
 * again every few seconds until the test has ended.
 */
trait EndsInTime
{
    private const THROWN_AGAIN_AFTER = 10;

    #[Before]
    protected function startTheClock(): void
    {
        if (!\function_exists('pcntl_alarm')) {
            return;
        }
        $seconds = $this->deadline();
        pcntl_async_signals(true);
        pcntl_signal(\SIGALRM, static function () use ($seconds): never {
            pcntl_alarm(self::THROWN_AGAIN_AFTER);
            throw new \RuntimeException("The test did not end within {$seconds} s");
        });
        pcntl_alarm($seconds);
    }

    /** Runs after the hooks that end what the test has started, because they may hang as well. */
    #[After(-5)]
    protected function stopTheClock(): void
    {
        if (\function_exists('pcntl_alarm')) {
            pcntl_alarm(0);
            pcntl_signal(\SIGALRM, \SIG_DFL);
            pcntl_async_signals(false);
        }
    }

    /** Seconds that one test may take. */
    protected function deadline(): int
    {
        return 30;
    }
}
