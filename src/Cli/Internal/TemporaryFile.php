<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** A temporary file that has no name: nothing of it outlives the process. */
final class TemporaryFile
{
    /**
     * @return resource
     *
     * @throws OutputFailedException
     */
    public static function open(): mixed
    {
        error_clear_last();
        $path = sys_get_temp_dir() . '/spindle-' . bin2hex(random_bytes(12));
        $mask = umask(0o077);
        $file = @fopen($path, 'x+');
        umask($mask);
        if ($file === false) {
            throw OutputFailedException::lastError("a temporary file in '" . sys_get_temp_dir() . "'");
        }
        unlink($path);

        return $file;
    }
}
