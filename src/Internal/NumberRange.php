<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Checks that numbers are in the range that timers and counters support, and shows numbers in messages. */
final class NumberRange
{
    /** Maximum of a timer: about 31 years. In nanoseconds, its sum with the monotonic clock fits into 64 bits. */
    public const MAX_SECONDS = 1_000_000_000;

    /** The sum of two counts up to this maximum fits into 32 bits. */
    private const MAX_COUNT = 1_000_000_000;

    /**
     * @param string $what subject of the error message, such as "The delay"
     *
     * @throws \ValueError unless the number is from 0 to {@see MAX_SECONDS}
     */
    public static function checkSeconds(string $what, float $seconds): float
    {
        return $seconds >= 0 && $seconds <= self::MAX_SECONDS
            ? $seconds
            : throw new \ValueError(
                "{$what} must be 0 or more seconds, at most " . self::MAX_SECONDS . ', not ' . self::text($seconds),
            );
    }

    /** @throws \ValueError unless the number is above 0 and at most {@see MAX_SECONDS} */
    public static function checkPositiveSeconds(string $what, float $seconds): float
    {
        return $seconds > 0 && $seconds <= self::MAX_SECONDS
            ? $seconds
            : throw new \ValueError(
                "{$what} must be more than 0 seconds, at most " . self::MAX_SECONDS . ', not ' . self::text($seconds),
            );
    }

    /**
     * @param array<string, float|null> $options limits in seconds, by name: INF for no limit, null for an unset option
     *
     * @throws \ValueError unless each number is above 0
     */
    public static function checkTimeLimits(array $options): void
    {
        foreach ($options as $name => $seconds) {
            if ($seconds !== null && !($seconds > 0)) {
                throw new \ValueError("The option {$name} must be more than 0 seconds, not " . self::text($seconds));
            }
        }
    }

    /**
     * @param array<string, int|null> $options numbers by name; null for an unset option
     *
     * @throws \ValueError unless each number is at least 1
     */
    public static function checkPositiveCounts(array $options): void
    {
        foreach ($options as $name => $number) {
            if ($number !== null && $number < 1) {
                throw new \ValueError("The option {$name} must be at least 1, not {$number}");
            }
        }
    }

    /** @throws \ValueError unless the number is from `$minimum` to {@see MAX_COUNT} */
    public static function checkCount(string $what, int $number, int $minimum): int
    {
        return $number >= $minimum && $number <= self::MAX_COUNT
            ? $number
            : throw new \ValueError(
                "{$what} must be {$minimum} or more, at most " . self::MAX_COUNT . ", not {$number}",
            );
    }

    /** Returns a number as text. Since PHP 8.5, a direct conversion of NAN causes a warning. */
    public static function text(float $number): string
    {
        return is_nan($number) ? 'NAN' : (string) $number;
    }
}
