<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

enum OpenQuotes
{
    case None;
    case Single;
    case Double;

    /** Only a number can be inserted at the position: a shell could run any other value as code. */
    case Refused;
}
