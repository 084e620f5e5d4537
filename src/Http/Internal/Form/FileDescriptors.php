<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

/** The descriptors of a server, which its connections and the files of uploads share. */
interface FileDescriptors
{
    /** Returns how many files of uploads can be open at once. */
    public function maxFiles(): int;

    /** Warns that a file was refused, and closes connections that are too slow. */
    public function handleTooManyFiles(): void;
}
