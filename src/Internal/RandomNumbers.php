<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Gives a fork other random numbers than its parent process and the other forks. */
final class RandomNumbers
{
    private const MAX_SKIPPED = 0x3FFF; // takes at most 0.2 ms with PHP 8.2

    /** Seeds mt_rand(). Skips a random count of numbers of lcg_value(), which PHP can't seed, and deprecates in 8.4. */
    public static function diverge(): void
    {
        mt_srand(random_int(0, \PHP_INT_MAX));
        Warnings::suppressed(static function (): void {
            for ($count = random_int(0, self::MAX_SKIPPED); $count > 0; --$count) {
                lcg_value();
            }
        });
    }
}
