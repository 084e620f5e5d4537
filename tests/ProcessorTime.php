<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** Measures processor time, in which the work of other processes does not count. */
final class ProcessorTime
{
    /**
     * Returns the seconds of processor time that a call needed in this process.
     *
     * @param \Closure(): mixed $call
     */
    public static function of(\Closure $call): float
    {
        $before = self::used();
        $call();

        return self::used() - $before;
    }

    private static function used(): float
    {
        /** @var array<string, int> $usage */
        $usage = getrusage();

        return $usage['ru_utime.tv_sec']
            + $usage['ru_stime.tv_sec']
            + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
    }
}
