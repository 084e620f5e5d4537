<?php

declare(strict_types=1);

namespace Spindle\Tests;

/**
 * Throws an exception into a test that exceeds its deadline. Needs ext-pcntl, and does nothing without it.
 *
 * A fiber of the test may catch the exception, so the alarm repeats it until the test ends.
 */
final class Alarm
{
    /** In seconds. */
    private const REPEAT_INTERVAL = 10;

    public static function start(int $seconds): void
    {
        if (!\function_exists('pcntl_alarm')) {
            return;
        }
        pcntl_async_signals(true);
        pcntl_signal(\SIGALRM, static function () use ($seconds): void {
            pcntl_alarm(self::REPEAT_INTERVAL);
            if (!self::isReportingFailure()) {
                throw new \RuntimeException("The test did not end within {$seconds} s");
            }
        });
        pcntl_alarm($seconds);
    }

    public static function stop(): void
    {
        if (\function_exists('pcntl_alarm')) {
            pcntl_alarm(0);
            pcntl_signal(\SIGALRM, \SIG_DFL);
            pcntl_async_signals(false);
        }
    }

    /** Returns whether PHPUnit is describing a failure. It counts the test as passed if an exception interrupts it. */
    private static function isReportingFailure(): bool
    {
        foreach (debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS) as $call) {
            if (str_starts_with($call['class'] ?? '', 'PHPUnit\\Event\\')) {
                return true;
            }
        }

        return false;
    }
}
