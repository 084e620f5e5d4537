<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

/** Processor time of this process: while it works it reads no answers, so that time is not the server's. */
final class BusyTime
{
    /** Nanoseconds for which a reading is good, since the system's clock of processor time is slow to read. */
    private const PRECISION = 1_000_000;

    private static int $readAt = -self::PRECISION;

    private static int $used = 0;

    /** @param int $now hrtime */
    public static function until(int $now): int
    {
        if ($now - self::$readAt >= self::PRECISION) {
            /** @var array<string, int>|false $usage */
            $usage = getrusage();
            if ($usage !== false) {
                self::$used = 1_000 * (1_000_000 * ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']) + $usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']);
            }
            self::$readAt = $now;
        }

        return self::$used;
    }
}
