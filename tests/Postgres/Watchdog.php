<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

use Revolt\EventLoop;

/** Measures how long the event loop is blocked. Blocking code shows as a gap between two turns. */
final class Watchdog
{
    private const PERIOD = 0.001;

    /**
     * Calls `$work` in the calling fiber, while a timer measures the gaps.
     *
     * @param \Closure(): mixed $work
     *
     * @return float longest gap in seconds; at least about the timer's period of a millisecond
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
