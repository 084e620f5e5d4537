<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** A monotonic clock in seconds. Tests that simulate time replace its source. */
final class Clock
{
    /** @var (\Closure(): float)|null */
    private static ?\Closure $source = null;

    public static function now(): float
    {
        return self::$source === null ? hrtime(true) / 1e9 : (self::$source)();
    }

    /** @param (\Closure(): float)|null $source returns the time; null for the clock of the system */
    public static function replace(?\Closure $source): void
    {
        self::$source = $source;
    }
}
