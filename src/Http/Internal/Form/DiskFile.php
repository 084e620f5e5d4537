<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

/** Calls a function when the stream of a file is closed. */
final class DiskFile
{
    /** @param \Closure(): void $onClose */
    public function __construct(private readonly \Closure $onClose) {}

    public function __destruct()
    {
        ($this->onClose)();
    }
}
