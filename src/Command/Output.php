<?php

declare(strict_types=1);

namespace Spindle\Command;

/** Target of a command's standard output or standard error. */
enum Output
{
    /** Keep the output for the result: in memory up to 1 MiB (64 MiB per pool), otherwise in an unlinked file. */
    case Capture;

    /** Write to the standard output or standard error of this process. */
    case Inherit;

    /** Write to /dev/null. */
    case Discard;
}
