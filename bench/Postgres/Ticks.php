<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Revolt\EventLoop;

/** Clock of the event loop: blocking work shows as a gap between two ticks. */
final class Ticks
{
    private const INTERVAL = 0.001;

    /**
     * Runs the work in the calling fiber.
     *
     * @param \Closure(): void $work
     *
     * @return float seconds of the longest gap during the work; about a millisecond at least, the period of the ticks
     */
    public static function during(\Closure $work): float
    {
        [$longest, $last] = [0, hrtime(true)];
        $tick = static function () use (&$longest, &$last): void {
            $now = hrtime(true);
            [$longest, $last] = [max($longest, $now - $last), $now];
        };
        $timer = EventLoop::repeat(self::INTERVAL, $tick);
        try {
            $work();
        } finally {
            EventLoop::cancel($timer);
            $tick();
        }

        return $longest / 1e9;
    }
}
