<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** How long the loops of the long tests are, and where their randomness comes from. */
final class Scale
{
    /** The count to run: all of it with SPINDLE_TEST_FULL=1, a tenth otherwise, at least one. */
    public static function of(int $full): int
    {
        return self::isFull() ? $full : max(1, intdiv($full, 10));
    }

    public static function isFull(): bool
    {
        return getenv('SPINDLE_TEST_FULL') === '1';
    }

    /** The same number throughout a run and in its child processes; SPINDLE_TEST_SEED repeats an earlier run's. */
    public static function seed(): int
    {
        $seed = getenv('SPINDLE_TEST_SEED');
        if ($seed === false || $seed === '') {
            $seed = (string) random_int(1, 0x7FFF_FFFF);
            putenv("SPINDLE_TEST_SEED={$seed}");
        }
        if (preg_match('/^\d{1,18}$/', $seed) !== 1) {
            throw new \InvalidArgumentException("SPINDLE_TEST_SEED is \"{$seed}\": give a number");
        }

        return (int) $seed;
    }
}
