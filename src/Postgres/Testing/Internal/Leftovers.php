<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing\Internal;

use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Launcher\Process\Signals;

/** What there is of a cluster outside of this process: its directory and the processes that work in it. */
final class Leftovers
{
    /** Seconds between two looks at something that takes a while. */
    public const LOOK = 0.005;

    /** Seconds that a server is given to end at once. */
    private const GRACE = 0.7;

    private const SIGQUIT = 3;
    private const SIGKILL = 9;
    private const SIGCONT = 18;

    /**
     * The live processes of a server or of initdb, also when their parents are gone. They are known by the directory's
     * name, which is unique: in their command line, for it is the cluster's name as well, or, where this process may
     * see it, in their working directory.
     *
     * @return array<int, string> "postgres" or "initdb" by pid; none where there is no /proc
     */
    public static function processes(string $directory): array
    {
        $processes = [];
        foreach (Files::in('/proc') as $entry) {
            $line = (int) $entry > 0 ? @file_get_contents("/proc/{$entry}/cmdline") : false;
            if ($line !== false && preg_match('~^(?:[^\0]*/)?(postgres|initdb)[:\0]~', $line, $match) === 1
                && (str_contains($line, basename($directory)) || str_starts_with((string) @readlink("/proc/{$entry}/cwd"), "{$directory}/"))) {
                $processes[(int) $entry] = $match[1];
            }
        }

        return $processes;
    }

    /**
     * The lines of postmaster.pid: pid, data directory, time of the start, port, socket directory, listen address, key and
     * id of its shared memory, and its state; see src/include/utils/pidfile.h of PostgreSQL.
     *
     * @return array<int, string> none when there is no such file; a server that was killed leaves it
     */
    public static function postmaster(string $directory): array
    {
        $lines = @file("{$directory}/data/postmaster.pid", \FILE_IGNORE_NEW_LINES);

        return $lines === false ? [] : $lines;
    }

    /** Ends the server at once, and removes all that there is of the cluster. */
    public static function remove(string $directory): void
    {
        self::signal($directory, self::SIGCONT);
        $processes = self::processes($directory);
        $postmaster = (int) (self::postmaster($directory)[0] ?? 0);
        if (isset($processes[$postmaster])) {
            Signals::send($postmaster, self::SIGQUIT);
        }
        foreach (array_keys($processes, 'initdb', true) as $initdb) {
            Signals::send($initdb, self::SIGKILL); // the server that it feeds ends with its input, and cleans up
        }
        self::wait(static fn(): bool => self::processes($directory) === [], self::GRACE);
        self::wait(static function () use ($directory): bool { // a process that initdb has just started makes files yet
            self::killProcesses($directory);
            self::removeSharedMemory($directory);
            exec('rm -rf -- ' . escapeshellarg($directory) . ' 2>&1');
            clearstatcache();

            return !file_exists($directory);
        }, self::GRACE);
    }

    public static function killProcesses(string $directory): void
    {
        self::wait(static function () use ($directory): bool {
            self::signal($directory, self::SIGKILL);

            return self::processes($directory) === [];
        }, 5.0);
    }

    public static function signal(string $directory, int $signal): void
    {
        foreach (array_keys(self::processes($directory)) as $pid) {
            Signals::send($pid, $signal);
        }
    }

    /** @param \Closure(): bool $condition that is met by something outside of this process */
    public static function wait(\Closure $condition, float $seconds): bool
    {
        for ($end = hrtime(true) + (int) ($seconds * 1e9); !$condition(); usleep((int) (self::LOOK * 1e6))) {
            if (hrtime(true) >= $end) {
                return false;
            }
        }

        return true;
    }

    /** A server that ends in an orderly way removes it, and with it what says which one it is. */
    private static function removeSharedMemory(string $directory): void
    {
        if (preg_match('/^ *\d+ +(\d+)$/', self::postmaster($directory)[6] ?? '', $match) === 1) {
            exec("ipcrm -m {$match[1]} 2>&1");
        }
    }
}
