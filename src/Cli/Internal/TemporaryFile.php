<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\Internal\UnlinkedFile;

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
        $file = UnlinkedFile::open(sys_get_temp_dir());
        if ($file === false) {
            throw OutputFailedException::lastError("a temporary file in '" . sys_get_temp_dir() . "'");
        }

        return $file;
    }
}
