<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The ways in which a claim ends. */
enum SettlementKind: int
{
    /** The job has its outcome. */
    case Done = 1;

    /** The job failed for good. The failure is its outcome, and the job is kept as a dead letter. */
    case Dead = 2;

    /** The job is to be retried. */
    case Retry = 3;

    /** The job was not started, or was given back. Any agent may claim it. */
    case Release = 4;

    /** The job was cancelled, which is its outcome. */
    case Cancelled = 5;

    /** The frame can't be verified. Another owner gets the job. After refusals by two owners the job is dead. */
    case Refused = 6;

    /** The job is to be retried, by another owner if there is one. */
    case Elsewhere = 7;

    /** Returns the name of the counter. */
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
