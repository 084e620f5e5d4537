<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** The quotes around a position in a shell line. */
enum Quoting
{
    case None;
    case Single;
    case Double;

    /** Only a number may be inserted: a shell could run any other value as code. */
    case Refused;
}
