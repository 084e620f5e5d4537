<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/** The tasks of the benchmarks. */
final class Work
{
    /** One of this many mixed tasks is long. */
    public const TASKS_PER_LONG_TASK = 100;

    /** CPU seconds of a long and of a short mixed task. */
    public const LONG_SECONDS = 0.1;
    public const SHORT_SECONDS = 10e-6;

    public static function same(int $number): int
    {
        return $number;
    }

    public static function nothing(): int
    {
        return 1;
    }

    /** @return int id of the process that has slept */
    public static function pause(int $microseconds): int
    {
        usleep($microseconds);

        return (int) getmypid();
    }

    /** Uses CPU time, independent of elapsed time. */
    public static function burn(int $number): int
    {
        $long = $number % self::TASKS_PER_LONG_TASK === 0;
        $clock = (bool) \PHP_ZTS ? ($long ? self::threadTime(...) : self::wallTime(...)) : self::processTime(...);
        $until = $clock() + ($long ? self::LONG_SECONDS : self::SHORT_SECONDS);
        while ($clock() < $until);

        return $number;
    }

    public static function echo(string $bytes): string
    {
        return $bytes;
    }

    /** Runs the CPU-bound example of Pumice's README, with its number of iterations as a parameter. */
    public static function calculate(int $iterations): float
    {
        $result = 0;
        for ($i = 0; $i < $iterations; ++$i) {
            $result += sqrt($i) * log($i + 1) * sin($i) * cos($i) * exp($i % 10);
        }

        return (float) $result;
    }

    /** Writes the time, then kills this process. */
    public static function killSelf(string $file): never
    {
        file_put_contents($file, (string) hrtime(true));
        posix_kill((int) getmypid(), \SIGKILL);
        exit(1);
    }

    private static function processTime(): float
    {
        /** @var array<string, int> $usage */
        $usage = getrusage();

        return $usage['ru_utime.tv_sec']
            + $usage['ru_stime.tv_sec']
            + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
    }

    /**
     * Returns the CPU time of this thread.
     *
     * PHP has no clock for one thread. Reading the kernel's file costs microseconds, too much for a short task.
     */
    private static function threadTime(): float
    {
        return (int) @file_get_contents('/proc/thread-self/schedstat') / 1e9;
    }

    private static function wallTime(): float
    {
        return hrtime(true) / 1e9;
    }
}
