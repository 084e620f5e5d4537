<?php

declare(strict_types=1);

namespace Spindle\Internal;

/**
 * Finds the signals that were ignored when this process started, such as SIGINT in background jobs of a shell script.
 * PHP has no function that finds them. The system reports most signals as caught, because PHP has its own handlers.
 * These handlers keep the behaviour from the start of the process: they ignore the signal, or end the process. And
 * pcntl_signal_get_handler() knows only handlers of pcntl_signal(). Therefore, for each signal, a fork of this process
 * sends the signal to itself. If the fork survives, the signal is ignored.
 */
final class IgnoredSignals
{
    private const SIGKILL = 9;
    private const REQUIRED_FUNCTIONS = ['pcntl_fork', 'pcntl_waitpid', 'pcntl_wtermsig', 'posix_kill'];

    /**
     * @param list<int> $signals signals for which no handler was set
     *
     * @return list<int> ignored signals; empty if ext-pcntl or ext-posix is missing
     */
    public static function among(array $signals): array
    {
        if (array_filter(self::REQUIRED_FUNCTIONS, \function_exists(...)) !== self::REQUIRED_FUNCTIONS) {
            return [];
        }
        $forks = array_map(self::fork(...), $signals);
        $survived = array_map(self::survived(...), $forks);

        return array_keys(array_filter(array_combine($signals, $survived)));
    }

    /** Starts a fork that sends itself the signal, then SIGKILL. Returns its pid; -1 if no process can be started. */
    private static function fork(int $signal): int
    {
        $pid = Warnings::suppressed(static fn(): int => pcntl_fork());
        if ($pid === 0) {
            posix_kill((int) getmypid(), $signal);
            posix_kill((int) getmypid(), self::SIGKILL);
        }

        return $pid;
    }

    /** Returns whether the fork survived the tested signal, so that SIGKILL has ended the fork. */
    private static function survived(int $pid): bool
    {
        return $pid > 0
            && pcntl_waitpid($pid, $status) === $pid
            && \is_int($status)
            && pcntl_wtermsig($status) === self::SIGKILL;
    }
}
