<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/**
 * Reads files and folders that may be missing or unreadable, and may be removed at any time, such as those of /proc.
 * Sets PHP's own error handler for each read, because a handler of the application may throw in spite of `@`.
 */
final class Files
{
    /** @return list<string> names in the folder; none when it can't be read */
    public static function in(string $directory): array
    {
        set_error_handler(null);
        try {
            $names = @scandir($directory);
        } finally {
            restore_error_handler();
        }

        return $names === false ? [] : $names;
    }

    public static function read(string $file): string|false
    {
        set_error_handler(null);
        try {
            return @file_get_contents($file);
        } catch (\ValueError) {
            return false; // the path is empty, or contains a NUL byte
        } finally {
            restore_error_handler();
        }
    }
}
