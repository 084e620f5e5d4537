<?php

declare(strict_types=1);

namespace Spindle\Tests;

use function Amp\delay;

/** Measures how much memory and how many descriptors repeated work leaves behind without PHP's garbage collector. */
trait MeasuresGrowth
{
    /** Rounds before the measurement, which fill the caches of PHP and Spindle. */
    private const WARM_UP_ROUNDS = 20;

    /**
     * Returns the bytes by which each round increases the memory.
     *
     * @param \Closure(): mixed $round
     */
    private static function bytesPerRound(\Closure $round, int $rounds): float
    {
        self::repeat($round, self::WARM_UP_ROUNDS);
        gc_collect_cycles();
        gc_disable();
        try {
            $before = memory_get_usage();
            self::repeat($round, $rounds);

            return (memory_get_usage() - $before) / $rounds;
        } finally {
            gc_enable();
        }
    }

    /**
     * Repeats the round, and then lets fibers and callbacks end that the last round has left behind.
     *
     * @param \Closure(): mixed $round
     */
    private static function repeat(\Closure $round, int $rounds): void
    {
        for ($i = 0; $i < $rounds; ++$i) {
            $round();
        }
        for ($turn = 0; $turn < 5; ++$turn) {
            delay(0);
        }
    }
}
