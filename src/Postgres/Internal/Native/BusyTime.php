<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

/** Time in which this process works or waits for a processor. It does not count as the server's time. */
final class BusyTime
{
    /** Nanoseconds for which a reading is reused, because one takes some microseconds. */
    private const PRECISION_NANOSECONDS = 2_500_000;

    /**
     * File with the nanoseconds on a processor and the nanoseconds of waiting for one.
     *
     * @see https://www.kernel.org/doc/html/latest/scheduler/sched-stats.html
     */
    private const SCHEDSTAT_FILE = '/proc/self/schedstat';

    private static bool $hasFile = true;

    /** Time of the last reading, by hrtime(). */
    private static int $readAt = -self::PRECISION_NANOSECONDS;
    private static int $used = 0;

    /** @param int $now time by hrtime() */
    public static function until(int $now): int
    {
        if ($now - self::$readAt >= self::PRECISION_NANOSECONDS) {
            self::$readAt = $now;
            self::$used = self::read();
        }

        return self::$used;
    }

    private static function read(): int
    {
        $text = self::$hasFile ? @file_get_contents(self::SCHEDSTAT_FILE) : false;
        self::$hasFile = $text !== false;
        if ($text !== false) {
            [$ran, $waited] = [...explode(' ', $text), 0, 0];

            return (int) $ran + (int) $waited;
        }
        /** @var array<string, int> $usage */
        $usage = getrusage();

        return 1_000_000_000 * ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec'])
            + 1_000 * ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']);
    }
}
