<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Http\HttpException;

/** Limits the open files of a server's uploads. Each file needs a descriptor, and connections need descriptors too. */
final class DiskFiles
{
    public int $count = 0;

    public function __construct(private readonly FileDescriptors $descriptors) {}

    /** @throws HttpException when the limit is reached */
    public function check(): void
    {
        if ($this->count >= $this->descriptors->maxFiles()) {
            $this->descriptors->handleTooManyFiles();
            throw new HttpException(503, 'Too many files are being uploaded at once', ['Retry-After' => '1']);
        }
    }

    /** @param resource $file */
    public function add($file): void
    {
        // When PHP closes the stream, PHP destroys its context options. The destructor of DiskFile then lowers $count.
        stream_context_set_option($file, 'spindle', 'open', new DiskFile($this));
    }
}
