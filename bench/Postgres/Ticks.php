<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Revolt\EventLoop;

/** The event loop's clock: whatever blocks shows as a gap between two of its ticks. */
final class Ticks
{
    private const PERIOD = 0.001;

    /**
     * Does the work in the calling fiber.
     *
     * @param \Closure(): void $work
     *
     * @return float seconds of the longest gap meanwhile; about a millisecond at least, for so often it ticks
     */
    public static function during(\Closure $work): float
    {
        [$longest, $last] = [0, hrtime(true)];
        $tick = static function () use (&$longest, &$last): void {
            $now = hrtime(true);
            [$longest, $last] = [max($longest, $now - $last), $now];
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
