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

    /** The name of its counter. */
    public function counter(): string
    {
        return match ($this) {
            self::Done => 'done_total',
            self::Dead => 'dead_total',
            self::Retry => 'retried_total',
            self::Release => 'released_total',
            self::Cancelled => 'cancelled_total',
        };
    }
}
