<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** Where in a shell line a value is put. */
enum Quoting
{
    case None;
    case Single;
    case Double;

    /** Only what no shell can take for anything else may be put here: a number. */
    case Refused;
}
