<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

/** When the output of a job is printed. */
enum OutputMode
{
    /** All of it, when the job is over. */
    case Grouped;

    /** Each line as soon as it is complete. */
    case Lines;

    /** The job writes it itself. */
    case Direct;
}
