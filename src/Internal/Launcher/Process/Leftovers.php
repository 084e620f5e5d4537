<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Names of temporary files that a killed process could not remove (see Spindle\Internal\UnlinkedFile). */
final class Leftovers
{
    /** @param string $prefix prefix of the paths of its files, absolute */
    public static function remove(int $pool, string $prefix): void
    {
        if (!self::isGone($pool)) {
            return;
        }
        foreach (Files::in(\dirname($prefix)) as $name) {
            if (str_starts_with($name, basename($prefix))) {
                @unlink(\dirname($prefix) . "/{$name}");
            }
        }
    }

    /** Whether the pool's process has ended. It loses its command line before its pipes are closed. */
    private static function isGone(int $pool): bool
    {
        return (string) @file_get_contents("/proc/{$pool}/cmdline") === ''
            || preg_match("/\) \S {$pool} /", (string) @file_get_contents('/proc/self/stat')) !== 1;
    }
}
