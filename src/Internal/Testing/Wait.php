<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

/** Waits, without an event loop, for an event outside of this process. */
final class Wait
{
    /** Seconds between two checks. */
    private const CHECK_INTERVAL = 0.005;

    /**
     * @param \Closure(): bool $condition
     *
     * @return bool whether it was met in time
     */
    public static function until(\Closure $condition, float $seconds): bool
    {
        for ($end = hrtime(true) + (int) ($seconds * 1e9); !$condition(); usleep((int) (self::CHECK_INTERVAL * 1e6))) {
            if (hrtime(true) >= $end) {
                return false;
            }
        }

        return true;
    }
}
