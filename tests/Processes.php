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
        foreach (self::all() as $pid) {
            $stat = self::stat($pid);
            if ($stat !== null && $stat[1] === $parent) {
                $children[$pid] = $stat[0] === 'Z' ? '(zombie)' : self::commandLine($pid);
            }
        }

        return $children;
    }

    /** @return array<int, string> command lines by pid of those with the variable in their environment, zombies left out */
    public static function withVariable(string $name, string $value): array
    {
        $found = [];
        foreach (self::all() as $pid) {
            $environment = @file_get_contents("/proc/{$pid}/environ");
            if ($environment !== false && str_contains("\0{$environment}", "\0{$name}={$value}") && self::isAlive($pid)) {
                $found[$pid] = self::commandLine($pid);
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

    /** @return list<int> */
    private static function all(): array
    {
        return array_values(array_filter(array_map(intval(...), Text::names('/proc')), static fn(int $pid): bool => $pid > 0));
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
