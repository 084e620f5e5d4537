<?php

declare(strict_types=1);

namespace Spindle\Command;

/** Target of a command's standard output or standard error. */
enum Output
{
    /**
     * Keep the output for the result: in memory up to 1 MiB, otherwise in an unlinked file. All outputs of a pool
     * together use at most 64 MiB of memory, and at most a quarter of PHP's memory_limit. The rest is in files.
     */
    case Capture;

    /** Write to the standard output or standard error of this process. */
    case Inherit;

    /** Write to /dev/null. */
    case Discard;
}
