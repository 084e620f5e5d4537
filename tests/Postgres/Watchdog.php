<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

use Revolt\EventLoop;

/** Measures for how long the event loop stands still: what blocks shows as a gap between two turns. */
final class Watchdog
{
    private const PERIOD = 0.001;

    /**
     * Does the work in the calling fiber, and watches meanwhile.
     *
     * @param \Closure(): mixed $work
     *
     * @return float seconds of the longest gap; at least about a millisecond, for so often it looks
     */
    public static function during(\Closure $work): float
    {
        $longest = 0;
        $last = hrtime(true);
        $tick = static function () use (&$longest, &$last): void {
            $now = hrtime(true);
            $longest = max($longest, $now - $last);
            $last = $now;
        };
        $timer = EventLoop::repeat(self::PERIOD, $tick);
        try {
            $work();
        } finally {
            EventLoop::cancel($timer);
            $tick();
        }

        return $longest / 1e9;
    }
}
