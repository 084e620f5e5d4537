<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

/** Counts one open file of an upload, until PHP closes the file's stream and destroys this object. */
final class DiskFile
{
    public function __construct(private readonly DiskFiles $files)
    {
        ++$files->count;
    }

    public function __destruct()
    {
        --$this->files->count;
    }
}
