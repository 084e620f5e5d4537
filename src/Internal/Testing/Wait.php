<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

/** Waits for events outside of this process, without an event loop. */
final class Wait
{
    private const CHECK_INTERVAL = 0.005;

    /**
     * @param \Closure(): bool $condition
     * @param float            $seconds   maximum time for which this process blocks
     *
     * @return bool false if the condition was still false after `$seconds`
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
