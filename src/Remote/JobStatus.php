<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The status of a job: a task or a command in a queue. */
enum JobStatus: string
{
    /** The job waits for an agent, or for the end of another job with the same exclusive key. */
    case Waiting = 'waiting';

    /** An agent has claimed the job. */
    case Running = 'running';

    /** The job can't be claimed yet: it was submitted with a delay, or waits for its next attempt. */
    case Delayed = 'delayed';

    /** The job has failed and is not retried: it is a dead letter. */
    case Dead = 'dead';

    /** The job has ended, and its outcome is kept. {@see Broker::listJobs()} does not list such jobs. */
    case Done = 'done';

    /** The job was cancelled before it had another outcome. {@see Broker::listJobs()} does not list such jobs. */
    case Cancelled = 'cancelled';
}
