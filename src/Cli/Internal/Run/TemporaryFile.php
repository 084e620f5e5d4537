<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Internal\UnlinkedFile;

/** Opens an unnamed temporary file. The system deletes the file when this process ends. */
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
