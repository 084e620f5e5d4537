<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** What becomes of a job that an agent had. */
enum SettlementKind: int
{
    /** It has its outcome. */
    case Done = 1;

    /** It failed for good: that is its outcome, and it is kept among the dead letters. */
    case Dead = 2;

    /** It is to be tried again. */
    case Retry = 3;

    /** It was not started, and is another agent's now. */
    case Release = 4;

    /** It was cancelled: that is its outcome. */
    case Cancelled = 5;

    /** Its frame can't be verified. It is another owner's now, and dead once two owners have said so. */
    case Refused = 6;

    /** It is to be tried again, by another owner if there is one. */
    case Elsewhere = 7;

    /** The name of its counter. */
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
