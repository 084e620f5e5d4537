<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** The quotes around a value's place in a shell line. */
enum Quoting
{
    case None;
    case Single;
    case Double;

    /** Only a number may be put here: a shell could read any other value as code. */
    case Refused;
}
