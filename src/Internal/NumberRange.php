<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Rejects numbers that a timer or a counter can't hold. */
final class NumberRange
{
    /** 31 years. In nanoseconds, the sum of this and the monotonic clock fits into 64 bits. */
    public const MAX_SECONDS = 1_000_000_000;

    /** The sum of two such numbers fits into 32 bits. */
    public const MAX_COUNT = 1_000_000_000;

    private function __construct() {}

    /**
     * @param string $what name of the option, at the beginning of the message
     *
     * @throws \ValueError unless it is from 0 to {@see MAX_SECONDS}
     */
    public static function seconds(string $what, float $seconds): float
    {
        return $seconds >= 0 && $seconds <= self::MAX_SECONDS
            ? $seconds
            : throw new \ValueError(
                "{$what} must be 0 or more seconds, at most " . self::MAX_SECONDS . ", not {$seconds}",
            );
    }

    /** @throws \ValueError unless it is above 0 and up to {@see MAX_SECONDS} */
    public static function positiveSeconds(string $what, float $seconds): float
    {
        return $seconds > 0 && $seconds <= self::MAX_SECONDS
            ? $seconds
            : throw new \ValueError(
                "{$what} must be more than 0 seconds, at most " . self::MAX_SECONDS . ", not {$seconds}",
            );
    }

    /** @throws \ValueError unless it is from the least to {@see MAX_COUNT} */
    public static function count(string $what, int $number, int $least): int
    {
        return $number >= $least && $number <= self::MAX_COUNT
            ? $number
            : throw new \ValueError("{$what} must be {$least} or more, at most " . self::MAX_COUNT . ", not {$number}");
    }
}
