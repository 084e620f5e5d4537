<?php

declare(strict_types=1);

namespace Spindle\Internal;

/**
 * Temporary files that have no name: created for their owner only, exclusively, and unlinked before the first byte is in
 * them, so that nothing of them remains, whatever ends the process.
 *
 * PHP can't create a file without a name (O_TMPFILE), and a kill may come between creating and unlinking. What finds a
 * process killed can remove that name: all names of one process begin alike, and those of no other do.
 */
final class UnlinkedFile
{
    private static ?string $token = null;

    /** What the paths of this process's files in a directory begin with; absolute if the directory is. */
    public static function prefix(string $directory): string
    {
        return "{$directory}/spindle-" . (self::$token ??= bin2hex(random_bytes(8)));
    }

    /** @return resource|false read and write; on false {@see error_get_last()} has the reason */
    public static function open(string $directory): mixed
    {
        $path = self::prefix($directory) . bin2hex(random_bytes(4));
        error_clear_last();
        $mask = umask(0o077);
        $file = @fopen($path, 'x+');
        umask($mask);
        if ($file !== false) {
            @unlink($path);
        }

        return $file;
    }
}
