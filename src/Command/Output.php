<?php

declare(strict_types=1);

namespace Spindle\Command;

/** Target of a command's standard output or standard error. */
enum Output
{
    /** Kept for the result: in memory up to 1 MiB (64 MiB per pool), else in an unlinked temporary file. */
    case Capture;

    /** Same target as the stream of this process. */
    case Inherit;

    /** /dev/null. */
    case Discard;
}
