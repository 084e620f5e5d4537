<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The status of a job in a queue. */
enum JobStatus: string
{
    /** The job may be claimed. */
    case Waiting = 'waiting';

    /** An agent has the job. */
    case Running = 'running';

    /** The job may not be claimed yet: it was submitted with a delay, or waits for its next attempt. */
    case Delayed = 'delayed';

    /** The job failed for good. */
    case Dead = 'dead';

    /** The job has an outcome, which is kept for the retention. Such jobs are not listed. */
    case Done = 'done';
}
