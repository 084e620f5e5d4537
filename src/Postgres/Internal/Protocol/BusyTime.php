<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Internal\Launcher\Process\Files;

/** Measures the time in which this process used a processor or waited for one. */
final class BusyTime
{
    /** Nanoseconds for which a measurement is reused, because measuring takes some microseconds. */
    private const PRECISION_NANOSECONDS = 2_500_000;

    /**
     * File that begins with two numbers of nanoseconds: how long this process used a processor, and waited for one.
     *
     * @see https://www.kernel.org/doc/html/latest/scheduler/sched-stats.html
     */
    private const SCHEDSTAT_FILE = '/proc/self/schedstat';

    private static bool $hasFile = true;

    private static int $readAt = -self::PRECISION_NANOSECONDS;

    private static int $busyNanoseconds = 0;

    /** Returns the process's busy nanoseconds until `$now`, the current hrtime(). The number may be 2.5 ms old. */
    public static function until(int $now): int
    {
        if ($now - self::$readAt >= self::PRECISION_NANOSECONDS) {
            self::$readAt = $now;
            self::$busyNanoseconds = self::read();
        }

        return self::$busyNanoseconds;
    }

    /** Returns the busy nanoseconds of this process. Without the file, omits the time of waiting for a processor. */
    private static function read(): int
    {
        $text = self::$hasFile ? Files::read(self::SCHEDSTAT_FILE) : false;
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
