<?php

declare(strict_types=1);

namespace Spindle\Internal;

/**
 * Which signals this process was started with ignored, as a shell does with SIGINT for the background jobs of a script.
 *
 * PHP has a handler of its own for most signals, so the system reports them as caught, and pcntl_signal_get_handler()
 * knows only what pcntl_signal() has set. Hence a fork sends itself the signal and lives or dies.
 */
final class IgnoredSignals
{
    private const KILL = 9;
    private const NEEDED = ['pcntl_fork', 'pcntl_waitpid', 'pcntl_wtermsig', 'posix_kill'];

    private function __construct() {}

    /**
     * @param list<int> $signals none of which has a handler yet
     *
     * @return list<int>
     */
    public static function among(array $signals): array
    {
        if (array_filter(self::NEEDED, \function_exists(...)) !== self::NEEDED) {
            return [];
        }
        $forks = array_map(self::fork(...), $signals);
        $survived = array_map(self::survived(...), $forks);

        return array_keys(array_filter(array_combine($signals, $survived)));
    }

    private static function fork(int $signal): int
    {
        $pid = pcntl_fork();
        if ($pid === 0) {
            posix_kill((int) getmypid(), $signal);
            posix_kill((int) getmypid(), self::KILL);
        }

        return $pid;
    }

    private static function survived(int $pid): bool
    {
        return $pid > 0
            && pcntl_waitpid($pid, $status) === $pid
            && \is_int($status)
            && pcntl_wtermsig($status) === self::KILL;
    }
}
