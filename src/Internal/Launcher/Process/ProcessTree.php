<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

use Spindle\Internal\Launcher\LauncherProtocol;

/**
 * Finds the live processes of commands in /proc, and kills processes.
 *
 * A process belongs to a command if its environment has the command's {@see LauncherProtocol::MARKER}, if it is in the
 * command's process group, or if its parent belongs to the command. A process without the marker and outside
 * the group is found only while its parent exists, or if an earlier search has found it. A launcher with FFI adopts
 * each process whose parent has exited, and ends the adopted processes when the pool ends.
 */
final class ProcessTree
{
    /** Job id for a descendant of the launcher that belongs to no known job. */
    private const NO_JOB = 0;

    /** Maximum searches by one {@see findStable()}, because any new process of the system causes another search. */
    private const MAX_SEARCHES = 4;

    /** Maximum further reads of empty environments in one search, with pauses of 0.1 ms. */
    private const MAX_READS = 500;

    /**
     * Returns the live processes of all jobs, including the jobs' own processes, but no zombies. Without /proc, returns
     * the jobs' own processes.
     *
     * @param string             $token    token of the launcher; every marker contains the token
     * @param array<int, int>    $roots    job ids by the pid of the job's own process
     * @param int                $ancestor pid of the launcher or agent; all its descendants are found. If `$roots` is
     *                                     empty, all processes of its session are found too
     * @param array<string, int> $known    job ids by "pid.start" from the previous call, to find processes whose
     *                                     parents have exited since. This call replaces the array
     *
     * @return array<int, int> job ids by pid
     */
    public static function find(string $token, array $roots, int $ancestor, array &$known = []): array
    {
        $parents = $jobs = $starts = [];
        $reads = 0;
        $since = self::startOf($ancestor);
        if ($since === 0 && $roots !== []) {
            return $roots;
        }
        foreach (Files::in('/proc') as $entry) {
            $pid = (int) $entry;
            if ($pid <= 1 || $pid === $ancestor || ($stat = self::stat($pid)) === null) {
                continue;
            }
            [$state, $parent, $group, $session, $start] = $stat;
            if ($state === 'Z' || $state === 'X' || $start < $since) {
                continue;
            }
            $parents[$pid] = $parent;
            $starts[$pid] = $start;
            $job = $roots[$pid] ?? self::jobOfMarker($pid, $token, $reads) ?? $roots[$group]
                ?? $known["{$pid}.{$start}"] ?? ($session === $ancestor && $roots === [] ? self::NO_JOB : null);
            if ($job !== null) {
                $jobs[$pid] = $job;
            }
        }

        $found = $known = [];
        foreach ($parents as $pid => $_) {
            $job = self::ownerOf($pid, $parents, $jobs, $ancestor);
            if ($job === null) {
                continue;
            }
            $found[$pid] = $job;
            if ($job !== self::NO_JOB) {
                $known["{$pid}.{$starts[$pid]}"] = $job;
            }
        }

        return $found;
    }

    /**
     * Calls `$find`. Repeats the call if it has found nothing, but the system has started processes in the meantime:
     * the search may have missed a new process whose parent has exited.
     *
     * @param \Closure(): list<int> $find returns pids
     *
     * @return list<int>
     */
    public static function findStable(\Closure $find): array
    {
        $searches = 0;
        do {
            $newest = self::newestPid();
            $found = $find();
        } while ($found === [] && self::newestPid() !== $newest && ++$searches < self::MAX_SEARCHES);

        return $found;
    }

    /**
     * Kills all processes that `$find` returns. First stops them with SIGSTOP, so that they can't start others. Calls
     * `$find` again until no new process is found.
     *
     * @param \Closure(): list<int> $find returns pids
     * @param \Closure(int, int): mixed $kill called with pid and signal
     */
    public static function kill(\Closure $find, \Closure $kill): void
    {
        $stopped = [];
        do {
            $new = self::findStable(static fn(): array => array_values(array_diff($find(), $stopped)));
            foreach ($new as $pid) {
                $kill($pid, 19); // SIGSTOP
                $stopped[] = $pid;
            }
        } while ($new !== []);
        foreach ($stopped as $pid) {
            $kill($pid, 9);
        }
    }

    /** Returns the state of a process as one letter of proc(5); '' when the process does not exist or can't be read. */
    public static function state(int $pid): string
    {
        return self::stat($pid)[0] ?? '';
    }

    /** @return array{string, int, int, int, int}|null state, parent, process group, session, start (clock ticks) */
    private static function stat(int $pid): ?array
    {
        $fields = self::fields($pid);

        return $fields === null
            ? null
            : [$fields[0], (int) $fields[1], (int) $fields[2], (int) $fields[3], (int) $fields[19]];
    }

    /** @return non-empty-list<string>|null fields of /proc/PID/stat from the state on */
    private static function fields(int $pid): ?array
    {
        $stat = Files::read("/proc/{$pid}/stat");
        if ($stat === false || $stat === '') { // '' if the process ended after the file was opened
            return null;
        }

        // Skips the name of the program. The name is in parentheses, and may itself contain parentheses.
        return explode(' ', substr($stat, (int) strrpos($stat, ')') + 2));
    }

    /** Returns whether a process has an environment, or will have one after its exec. Kernel threads have no memory. */
    private static function hasEnvironment(int $pid): bool
    {
        $fields = self::fields($pid);
        [$memory, $start, $end] = [$fields[20] ?? '0', $fields[47] ?? '0', $fields[48] ?? '0'];

        return $memory !== '0' && ($end === '0' || $start !== $end);
    }

    private static function newestPid(): string
    {
        $load = (string) Files::read('/proc/loadavg');

        return substr($load, (int) strrpos($load, ' '));
    }

    /** Returns the start time of a process, in clock ticks; 0 when the process does not exist. */
    private static function startOf(int $pid): int
    {
        return self::stat($pid)[4] ?? 0;
    }

    /** @param int $reads number of further reads, of all processes together; this call increases it */
    private static function jobOfMarker(int $pid, string $token, int &$reads): ?int
    {
        $file = "/proc/{$pid}/environ";
        $environment = Files::read($file);
        // The file is empty for a moment when the process executes another program.
        for (; $environment === '' && $reads < self::MAX_READS && self::hasEnvironment($pid); ++$reads) {
            usleep(100);
            $environment = Files::read($file);
        }
        $marker = "\0" . LauncherProtocol::MARKER . "={$token}.";
        $at = $environment === false ? false : strpos("\0{$environment}", $marker);

        return $at === false ? null : (int) substr("\0{$environment}", $at + \strlen($marker), 10);
    }

    /**
     * Returns the job id of the process or its nearest ancestor with a job; NO_JOB if only the launcher is an ancestor.
     *
     * @param array<int, int> $parents parent by pid
     * @param array<int, int> $jobs    job ids by pid
     */
    private static function ownerOf(int $pid, array $parents, array $jobs, int $ancestor): ?int
    {
        for ($seen = []; !isset($seen[$pid]); $pid = $parents[$pid]) {
            $seen[$pid] = true;
            if (isset($jobs[$pid])) {
                return $jobs[$pid];
            }
            if (($parents[$pid] ?? null) === $ancestor) {
                return self::NO_JOB;
            }
            if (!isset($parents[$pid])) {
                return null;
            }
        }

        return null;
    }
}
