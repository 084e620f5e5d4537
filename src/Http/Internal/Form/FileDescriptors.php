<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

/** The file descriptors of a server, for its connections and for the files of uploads. */
interface FileDescriptors
{
    public function maxFiles(): int;

    /** Logs that files are refused, at most once a minute. Closes connections of slow clients to free descriptors. */
    public function handleTooManyFiles(): void;
}
