<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** How a claim ends. Done, Dead and Cancelled give the job an outcome. The other kinds return the job to the queue. */
enum SettlementKind: int
{
    /** The task has returned a result, or the command has ended. */
    case Done = 1;

    /** The job has failed and is not retried. The failure is its outcome, and the job is kept as a dead letter. */
    case Dead = 2;

    /** The job is retried after a failed attempt or a crash. */
    case Retry = 3;

    /** The owner has given the job back. Any agent can claim it. */
    case Release = 4;

    /** The job was cancelled. The cancellation is its outcome. */
    case Cancelled = 5;

    /** The owner can't read or verify the frame. Another owner gets the job. If both refuse the job, it is dead. */
    case Refused = 6;

    /** The job is retried after a failed attempt, by another owner if there is one. */
    case Elsewhere = 7;

    /** Returns the name of the agent's counter for this kind. */
    public function counter(): string
    {
        return match ($this) {
            self::Done => 'done_total',
            self::Dead => 'dead_total',
            self::Retry, self::Elsewhere => 'retried_total',
            self::Release, self::Refused => 'released_total',
            self::Cancelled => 'cancelled_total',
        };
    }
}
