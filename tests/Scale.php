<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** Number of rounds of long tests, and the source of their randomness. */
final class Scale
{
    /** Returns the count to run: all of it with SPINDLE_TEST_FULL=1, otherwise a tenth, and at least one. */
    public static function of(int $full): int
    {
        return self::isFull() ? $full : max(1, intdiv($full, 10));
    }

    /**
     * Yields round numbers until the time for one random test is over: one second, or 20 with SPINDLE_TEST_FULL=1.
     *
     * Reports the number of rounds on standard error.
     *
     * @param float $share   part of that time, for a test with several loops
     * @param int   $atLeast rounds to run even if the time is over
     *
     * @return iterable<positive-int>
     */
    public static function rounds(float $share = 1.0, int $atLeast = 1): iterable
    {
        $caller = debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS, 2)[1] ?? ['function' => 'main'];

        $name = ($caller['class'] ?? '') . '::' . $caller['function'];

        return self::roundsFor($name, $share * (self::isFull() ? 20.0 : 1.0), $atLeast);
    }

    /** @return iterable<positive-int> */
    private static function roundsFor(string $name, float $seconds, int $atLeast): iterable
    {
        $start = hrtime(true);
        $end = $start + (int) ($seconds * 1e9);
        $rounds = 0;
        while ($rounds < $atLeast || hrtime(true) < $end) {
            yield ++$rounds;
        }
        fprintf(\STDERR, "%s: %d rounds in %.1f s\n", $name, $rounds, (hrtime(true) - $start) / 1e9);
    }

    /**
     * Returns whether a slow comparison of one of many cases is done: all of them with SPINDLE_TEST_FULL=1, otherwise
     * one of 20. The seed of the run decides which.
     *
     * @param list<string> $case words that identify the case
     */
    public static function includes(array $case): bool
    {
        return self::isFull() || (crc32(implode(' ', $case)) + self::seed()) % 20 === 0;
    }

    public static function isFull(): bool
    {
        return getenv('SPINDLE_TEST_FULL') === '1';
    }

    /** Returns the seed of this run and its child processes. SPINDLE_TEST_SEED repeats an earlier run. */
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
