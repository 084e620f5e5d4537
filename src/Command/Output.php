<?php

declare(strict_types=1);

namespace Spindle\Command;

/** What becomes of a command's standard output or standard error. */
enum Output
{
    /** Kept for the result; beyond a megabyte in an unlinked temporary file. */
    case Capture;

    /** Goes where this process's own stream goes. */
    case Inherit;

    /** Goes to /dev/null. */
    case Discard;
}
