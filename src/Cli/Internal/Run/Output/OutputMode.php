<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

enum OutputMode
{
    case Grouped;
    case Lines;
    case Direct;
}
