<?php

declare(strict_types=1);

namespace Spindle\Internal;

/**
 * Temporary files without a name: for their owner only, and unlinked before the first byte is written.
 *
 * PHP can't create a file without a name (O_TMPFILE), and a kill may come between creating and unlinking. All names of
 * one process have the same prefix, so that they can be removed after a kill.
 */
final class UnlinkedFile
{
    private static ?string $token = null;

    /** Returns the prefix of the paths of this process's files in a directory; absolute if the directory is. */
    public static function prefix(string $directory): string
    {
        return "{$directory}/spindle-" . (self::$token ??= bin2hex(random_bytes(8)));
    }

    /** @return resource|false open for reading and writing; on false {@see error_get_last()} has the reason */
    public static function open(string $directory): mixed
    {
        $path = self::prefix($directory) . bin2hex(random_bytes(4));
        error_clear_last();
        $mask = umask(0o077);
        $file = Warnings::suppressed(static fn(): mixed => @fopen($path, 'x+'));
        umask($mask);
        if ($file !== false) {
            Warnings::suppressed(static fn(): bool => @unlink($path));
        }

        return $file;
    }
}
