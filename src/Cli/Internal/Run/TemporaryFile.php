<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Internal\UnlinkedFile;

/** Opens temporary files without names. The system deletes each file when the file is closed. */
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
            throw OutputFailedException::temporaryFile();
        }

        return $file;
    }
}
