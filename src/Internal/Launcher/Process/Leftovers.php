<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Removes temporary files of Spindle\Internal\UnlinkedFile that the pool's process had not unlinked when it ended. */
final class Leftovers
{
    /** Removes files whose absolute paths begin with `$prefix`, if the pool's process (pid `$pool`) has ended. */
    public static function remove(int $pool, string $prefix): void
    {
        if (!self::hasEnded($pool)) {
            return;
        }
        foreach (Files::in(\dirname($prefix)) as $name) {
            if (str_starts_with($name, basename($prefix))) {
                @unlink(\dirname($prefix) . "/{$name}");
            }
        }
    }

    /**
     * Returns whether the pool's process has ended: the pid has no command line, or this process has another parent.
     * The second check is for a new process with the same pid. The system can assign the pid again only after the
     * children of the pool's process, such as this process, have got another parent.
     */
    private static function hasEnded(int $pool): bool
    {
        return (string) @file_get_contents("/proc/{$pool}/cmdline") === ''
            || preg_match("/\) \S {$pool} /", (string) @file_get_contents('/proc/self/stat')) !== 1;
    }
}
