<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** What runs on this machine, as /proc tells. */
final class Processes
{
    /** Whether it is there and no zombie. */
    public static function isAlive(int $pid): bool
    {
        return !\in_array(self::stat($pid)[0] ?? 'X', ['Z', 'X'], true);
    }

    /** One letter, as in proc(5): R, S, D, T, Z; '' when it is not there. */
    public static function state(int $pid): string
    {
        return self::stat($pid)[0] ?? '';
    }

    /** @return array<int, string> command lines by pid; a zombie's is "(zombie)" */
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

    /** Whether it is that process or a child of it, or a child of such a child, and so on. */
    public static function descendsFrom(int $pid, int $ancestor): bool
    {
        while ($pid > 1 && $pid !== $ancestor) {
            $pid = self::stat($pid)[1] ?? 0;
        }

        return $pid === $ancestor;
    }

    /**
     * Finds processes that have a variable in their environment; zombies have none.
     *
     * @param list<int> $except ids of processes that are not looked at
     *
     * @return array<int, string> command lines by pid
     */
    public static function withVariable(string $name, string $value, array $except = []): array
    {
        $found = [];
        foreach (array_diff(self::all(), $except) as $pid) {
            if (self::hasVariable($pid, $name, $value) && self::isAlive($pid)) {
                $found[$pid] = self::commandLine($pid);
            }
        }

        return $found;
    }

    /** Whether it was started with a variable whose value begins like this. */
    public static function hasVariable(int $pid, string $name, string $value): bool
    {
        $environment = @file_get_contents("/proc/{$pid}/environ");

        return $environment !== false && str_contains("\0{$environment}", "\0{$name}={$value}");
    }

    /**
     * Returns the processes that mention a text. nginx and FPM overwrite their environments, so command lines count,
     * too.
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

    /** @return list<int> the children of a process, of this one unless told otherwise, that run a pool's launcher */
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

    /** @return list<int> the ids of all processes */
    public static function all(): array
    {
        return array_values(array_filter(array_map(intval(...), Text::names('/proc')), static fn(int $pid): bool => $pid > 0));
    }

    /**
     * Reads the kernel's own list, which spares a look at every process.
     *
     * The list may lack a child when another one ends meanwhile: two equal answers in a row lack none.
     *
     * @return list<int>|null null where the kernel has no such list, or none of that process
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

    /** @return array{string, int}|null state and parent */
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
