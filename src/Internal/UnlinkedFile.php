<?php

declare(strict_types=1);

namespace Spindle\Internal;

/**
 * Opens temporary files, and unlinks each of them before the first write. Only the current user can open the files.
 * Programs that this process starts do not inherit the files.
 * PHP can't create a file without a name (O_TMPFILE). So a file remains if this process is killed before it unlinks the
 * file. All file names of a process have the same prefix, so that a launcher can find and remove such files.
 */
final class UnlinkedFile
{
    private static ?string $token = null;

    /** Returns the prefix of the paths of this process's files in a directory. A relative directory is not resolved. */
    public static function prefix(string $directory): string
    {
        return "{$directory}/spindle-" . (self::$token ??= bin2hex(random_bytes(8)));
    }

    /** @return resource|false false when the file can't be created; {@see error_get_last()} has the reason */
    public static function open(string $directory): mixed
    {
        $path = self::prefix($directory) . bin2hex(random_bytes(4));
        error_clear_last();
        $mask = umask(0o077);
        $file = Warnings::suppressed(static fn(): mixed => fopen($path, 'x+e'));
        umask($mask);
        if ($file !== false) {
            Warnings::suppressed(static fn(): bool => unlink($path));
        }

        return $file;
    }
}
