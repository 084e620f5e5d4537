<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

enum OutputMode
{
    /** All output together, when the job has ended. */
    case Grouped;

    /** Each line as soon as it is complete. */
    case Lines;

    /** The job itself writes to the streams of this process. */
    case Direct;
}
