<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

enum OutputMode
{
    /** Prints all output of a job together, when the job has ended. */
    case Grouped;

    case Lines;

    /** The job itself writes to the streams of this process. */
    case Direct;
}
