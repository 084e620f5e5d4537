<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Spindle\Internal\CannotWaitException;

/** Lets the event loop run at least every 10 ms while a fiber works and never has to wait. */
final class TimeSlice
{
    private const NANOSECONDS = 10_000_000;

    private int $startedAt = 0;

    /** @param int $now time by hrtime() at which a wait has ended: the event loop has run until then */
    public function begin(int $now): void
    {
        $this->startedAt = $now;
    }

    /** Suspends the fiber for a turn of the event loop if the slice is over, unless PHP can't switch fibers. */
    public function awaitTurnIfOver(): void
    {
        if (hrtime(true) - $this->startedAt < self::NANOSECONDS) {
            return;
        }
        try {
            LoopTurn::await();
        } catch (CannotWaitException) {
            // The fiber goes on with its work, because it can't be suspended here. Other fibers run later.
        }
        $this->startedAt = hrtime(true);
    }
}
