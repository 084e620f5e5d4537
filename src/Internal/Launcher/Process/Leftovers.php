<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Names of temporary files that a killed process had no time to remove (see Spindle\Internal\UnlinkedFile). */
final class Leftovers
{
    /** @param string $prefix what the paths of its files begin with, absolute */
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

    /** A process that is ending has lost its memory, and with it its command line, before its pipes are closed. */
    private static function isGone(int $pool): bool
    {
        return (string) @file_get_contents("/proc/{$pool}/cmdline") === ''
            || preg_match("/\) \S {$pool} /", (string) @file_get_contents('/proc/self/stat')) !== 1;
    }
}
