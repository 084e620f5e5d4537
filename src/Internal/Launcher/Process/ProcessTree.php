<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

use Spindle\Internal\Launcher\LauncherProtocol;

/**
 * Finds in /proc the live processes that descend from commands.
 *
 * A process belongs to a command if its environment has the command's marker, if it is in the command's process group,
 * or if its parent belongs. A process without marker and group whose parents are gone is not found. If the launcher is
 * a subreaper, it finds that one as its own descendant when the pool ends.
 */
final class ProcessTree
{
    /** The job of a descendant of $ancestor that belongs to no command. */
    public const UNCLAIMED = 0;

    /** Maximum number of searches while other programs start processes all the time. */
    private const MAX_SEARCHES = 4;

    /**
     * @param array<int, int> $roots    job by the pid of its process
     * @param int             $ancestor pid of the launcher, whose descendants are all found
     * @param array<string, int> $known result of an earlier call, for processes without parents; becomes the result of
     *                                  this one: job by pid and start
     *
     * @return array<int, int> job by pid, with the roots and without zombies
     */
    public static function find(string $token, array $roots, int $ancestor, array &$known = []): array
    {
        $parents = $jobs = $starts = [];
        $since = self::startOf($ancestor);
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
            $job = $roots[$pid] ?? self::jobOfMarker($pid, $token) ?? $roots[$group] ?? $known["{$pid}.{$start}"]
                ?? ($session === $ancestor && $roots === [] ? self::UNCLAIMED : null);
            if ($job !== null) {
                $jobs[$pid] = $job;
            }
        }

        $found = $known = [];
        foreach ($parents as $pid => $_) {
            $job = self::ownerOf($pid, $parents, $jobs, $ancestor);
            if ($job !== null) {
                $found[$pid] = $job;
            }
            if ($job !== null && $job !== self::UNCLAIMED) {
                $known["{$pid}.{$starts[$pid]}"] = $job;
            }
        }

        return $found;
    }

    /**
     * Repeats a search that finds nothing but during which processes were started: it may have missed a child of a
     * process that ended.
     *
     * @param \Closure(): list<int> $find
     *
     * @return list<int>
     */
    public static function findStable(\Closure $find): array
    {
        $searches = 0;
        do {
            $newest = self::newest();
            $found = $find();
        } while ($found === [] && self::newest() !== $newest && ++$searches < self::MAX_SEARCHES);

        return $found;
    }

    /**
     * Kills all processes. First stops them, until no more are found, so that none can start another one.
     *
     * @param \Closure(): list<int> $find
     * @param \Closure(int, int): void $kill called with pid and signal
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
        $stat = Files::read("/proc/{$pid}/stat");
        if ($stat === false || $stat === '') { // '' when it ended after the file was opened
            return null;
        }
        // The name, in parentheses, may contain any characters.
        $fields = explode(' ', substr($stat, (int) strrpos($stat, ')') + 2));

        return [$fields[0], (int) $fields[1], (int) $fields[2], (int) $fields[3], (int) $fields[19]];
    }

    /** Returns the pid that was assigned last. */
    private static function newest(): string
    {
        $load = (string) Files::read('/proc/loadavg');

        return substr($load, (int) strrpos($load, ' '));
    }

    private static function startOf(int $pid): int
    {
        return self::stat($pid)[4] ?? 0;
    }

    private static function jobOfMarker(int $pid, string $token): ?int
    {
        $environment = Files::read("/proc/{$pid}/environ");
        $marker = "\0" . LauncherProtocol::MARKER . "={$token}.";
        $at = $environment === false ? false : strpos("\0{$environment}", $marker);

        return $at === false ? null : (int) substr("\0{$environment}", $at + \strlen($marker), 10);
    }

    /**
     * @param array<int, int> $parents
     * @param array<int, int> $jobs
     */
    private static function ownerOf(int $pid, array $parents, array $jobs, int $ancestor): ?int
    {
        for ($seen = []; !isset($seen[$pid]); $pid = $parents[$pid]) {
            $seen[$pid] = true;
            if (isset($jobs[$pid])) {
                return $jobs[$pid];
            }
            if (($parents[$pid] ?? null) === $ancestor) {
                return self::UNCLAIMED;
            }
            if (!isset($parents[$pid])) {
                return null;
            }
        }

        return null;
    }
}
