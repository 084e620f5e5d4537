<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** How a claim of a job ends. Done, Dead and Cancelled set an outcome. Other kinds return the job to the queue. */
enum SettlementKind: int
{
    /** The task has returned a result, or the command has ended. */
    case Done = 1;

    /** The job has failed and is not retried. The failure is its outcome, and the job is kept as a dead letter. */
    case Dead = 2;

    /** The job is retried after a failed attempt or a crash. */
    case Retry = 3;

    /** The agent has given the job back. Any agent can claim the job. */
    case Release = 4;

    /** The job was cancelled. The cancellation is its outcome. */
    case Cancelled = 5;

    /** The agent can't read or verify the job. Another agent, if any, gets it. See {@see Delivery::$refusals}. */
    case Refused = 6;

    /** The agent lacks code of the task. The job is retried, by another agent if there is one. */
    case RetryElsewhere = 7;

    /** The task wants to run again later ({@see \Spindle\Worker\RetryLaterException}). This is no failed attempt. */
    case Postpone = 8;

    public function counter(): string
    {
        return match ($this) {
            self::Done => 'done_total',
            self::Dead => 'dead_total',
            self::Retry, self::RetryElsewhere => 'retried_total',
            self::Release, self::Refused => 'released_total',
            self::Postpone => 'postponed_total',
            self::Cancelled => 'cancelled_total',
        };
    }
}
