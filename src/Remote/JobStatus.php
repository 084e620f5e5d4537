<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** Where a job is. */
enum JobStatus: string
{
    /** It may be claimed. */
    case Waiting = 'waiting';

    /** An agent has it. */
    case Running = 'running';

    /** It may not be claimed yet: it was submitted so, or is to be tried again. */
    case Delayed = 'delayed';

    /** It failed for good. */
    case Dead = 'dead';

    /** It has its outcome, which is kept for a while. Such jobs are not listed. */
    case Done = 'done';
}
