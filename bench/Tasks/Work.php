<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/** What the tasks do. */
final class Work
{
    /** One in so many of the mixed tasks is a long one. */
    public const RARE = 100;

    /** Seconds of CPU time that a mixed task burns. */
    public const LONG = 0.1;
    public const SHORT = 10e-6;

    public static function same(int $number): int
    {
        return $number;
    }

    public static function nothing(): int
    {
        return 1;
    }

    /** @return int the process that did */
    public static function pause(int $microseconds): int
    {
        usleep($microseconds);

        return (int) getmypid();
    }

    /** Burns CPU time, whatever the clock on the wall says meanwhile. */
    public static function burn(int $number): int
    {
        $long = $number % self::RARE === 0;
        $clock = (bool) \PHP_ZTS ? ($long ? self::threadTime(...) : self::wallTime(...)) : self::processTime(...);
        $until = $clock() + ($long ? self::LONG : self::SHORT);
        while ($clock() < $until);

        return $number;
    }

    public static function echo(string $bytes): string
    {
        return $bytes;
    }

    /** The CPU-bound example of Pumice's README, with its number of iterations as an argument. */
    public static function calculate(int $iterations): float
    {
        $result = 0;
        for ($i = 0; $i < $iterations; ++$i) {
            $result += sqrt($i) * log($i + 1) * sin($i) * cos($i) * exp($i % 10);
        }

        return (float) $result;
    }

    /** Notes the time, and is gone. */
    public static function die(string $file): never
    {
        file_put_contents($file, (string) hrtime(true));
        posix_kill((int) getmypid(), \SIGKILL);
        exit(1);
    }

    private static function processTime(): float
    {
        /** @var array<string, int> $usage */
        $usage = getrusage();

        return $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec'] + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
    }

    /** PHP has no clock for one thread; the kernel's file costs microseconds to read, too much for a short task. */
    private static function threadTime(): float
    {
        return (int) @file_get_contents('/proc/thread-self/schedstat') / 1e9;
    }

    private static function wallTime(): float
    {
        return hrtime(true) / 1e9;
    }
}
