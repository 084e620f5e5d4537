<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** Processes of this machine, as listed in /proc. */
final class Processes
{
    /** Whether the process exists and is no zombie. */
    public static function isAlive(int $pid): bool
    {
        return !\in_array(self::stat($pid)[0] ?? 'X', ['Z', 'X'], true);
    }

    /** Returns the state of a process: R, S, D, T or Z, as in proc(5); '' when there is no such process. */
    public static function state(int $pid): string
    {
        return self::stat($pid)[0] ?? '';
    }

    /** Returns the processor time that a process has used, in hundredths of a second. */
    public static function processorTime(int $pid): int
    {
        $stat = (string) file_get_contents("/proc/{$pid}/stat");
        $fields = explode(' ', substr($stat, (int) strrpos($stat, ')') + 2));

        return (int) $fields[11] + (int) $fields[12];
    }

    /** @return array<int, string> command lines by pid; "(zombie)" for a zombie */
    public static function childrenOf(int $parent): array
    {
        $children = [];
        foreach (self::listedChildren($parent) ?? self::all() as $pid) {
            $stat = self::stat($pid);
            if ($stat !== null && $stat[1] === $parent) {
                $children[$pid] = $stat[0] === 'Z' ? '(zombie)' : self::commandLine($pid);
            }
        }

        return $children;
    }

    /** Whether a process is `$ancestor` or descends from it. */
    public static function descendsFrom(int $pid, int $ancestor): bool
    {
        while ($pid > 1 && $pid !== $ancestor) {
            $pid = self::stat($pid)[1] ?? 0;
        }

        return $pid === $ancestor;
    }

    /**
     * Finds processes by a variable in their environment. Zombies have none.
     *
     * @param list<int> $except ids of processes to skip
     *
     * @return array<int, string> state as in proc(5), and command line, by pid
     */
    public static function withVariable(string $name, string $value, array $except = []): array
    {
        $found = [];
        foreach (array_diff(self::all(), $except) as $pid) {
            if (self::hasVariable($pid, $name, $value) && self::isAlive($pid)) {
                $found[$pid] = self::state($pid) . ' ' . self::commandLine($pid);
            }
        }

        return $found;
    }

    /** Whether a process was started with a variable whose value begins with `$value`. */
    public static function hasVariable(int $pid, string $name, string $value): bool
    {
        $environment = @file_get_contents("/proc/{$pid}/environ");

        return $environment !== false && str_contains("\0{$environment}", "\0{$name}={$value}");
    }

    /**
     * Returns the processes that mention a text in their environment or command line.
     *
     * nginx and FPM overwrite their environments, so command lines count too.
     *
     * @return array<int, string> command lines by pid
     */
    public static function mentioning(string $text): array
    {
        $found = [];
        foreach (self::all() as $pid) {
            $line = self::commandLine($pid);
            if (str_contains($line . @file_get_contents("/proc/{$pid}/environ"), $text)) {
                $found[$pid] = $line;
            }
        }

        return $found;
    }

    /** @return list<int> ids of the launchers of pools among the children of `$parent`, by default of this process */
    public static function launchers(?int $parent = null): array
    {
        return array_keys(array_filter(
            self::childrenOf($parent ?? (int) getmypid()),
            static fn(string $line): bool => str_contains($line, '/Launcher/Process/main.php'),
        ));
    }

    public static function commandLine(int $pid): string
    {
        return trim(str_replace("\0", ' ', (string) @file_get_contents("/proc/{$pid}/cmdline")));
    }

    /** @return list<string> sockets that a program inherits from this process, such as "socket:[123]" */
    public static function inheritedSockets(): array
    {
        preg_match_all('/socket:\[\d+\]/', (string) shell_exec('ls -l /proc/self/fd'), $sockets);

        return $sockets[0];
    }

    /** @return list<int> ids of all processes */
    public static function all(): array
    {
        return array_values(array_filter(
            array_map(intval(...), Text::names('/proc')),
            static fn(int $pid): bool => $pid > 0,
        ));
    }

    /**
     * Reads the list of children that the kernel keeps, which avoids a check of each process.
     *
     * The list may lack a child when another one ends during the read. Two equal answers in a row are complete.
     *
     * @return list<int>|null null if the kernel has no such list, or there is no such process
     */
    private static function listedChildren(int $parent): ?array
    {
        $before = null;
        do {
            $last = $before;
            $before = '';
            foreach (Text::names("/proc/{$parent}/task") as $thread) {
                $children = @file_get_contents("/proc/{$parent}/task/{$thread}/children");
                if ($children === false) {
                    return null;
                }
                $before .= $children;
            }
        } while ($before !== $last);

        return Text::numbers($before);
    }

    /** @return array{string, int}|null state, and id of the parent */
    private static function stat(int $pid): ?array
    {
        $stat = @file_get_contents("/proc/{$pid}/stat");
        if ($stat === false || $stat === '') {
            return null;
        }
        $fields = explode(' ', substr($stat, (int) strrpos($stat, ')') + 2));

        return [$fields[0], (int) $fields[1]];
    }
}
