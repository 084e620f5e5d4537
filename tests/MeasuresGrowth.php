<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** Tests that repeated work leaves no memory behind, without PHP's garbage collector. */
trait MeasuresGrowth
{
    /** Rounds before the measurement, which fill the caches of PHP and Spindle. */
    private const WARM_UP_ROUNDS = 20;

    /**
     * Repeats the round. Then fibers and callbacks that the last round has left have a few seconds to end.
     *
     * @param \Closure(): mixed $round
     * @param int $maxBytes allowed growth of the memory per round
     */
    private static function assertNoGrowth(\Closure $round, int $rounds, int $maxBytes): void
    {
        for ($i = 0; $i < self::WARM_UP_ROUNDS; ++$i) {
            $round();
        }
        Eventually::holds(static fn(): bool => true, 'the class is loaded before the measurement');
        gc_collect_cycles();
        gc_disable();
        $before = memory_get_usage();
        try {
            for ($i = 0; $i < $rounds; ++$i) {
                $round();
            }
            $perRound = static fn(): float => (memory_get_usage() - $before) / $rounds;
            $first = round($perRound());
            Eventually::holds(
                static fn(): bool => $perRound() < $maxBytes,
                "each round leaves less than {$maxBytes} bytes ({$first} at first)",
            );
        } finally {
            gc_enable();
        }
    }
}
