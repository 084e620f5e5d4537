<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Spindle\Worker\TaskContext;

/** Tasks that are counted: each appends its progress to a file. */
final class LoggedTasks
{
    private const STARTED = 's';
    private const ENDED = 'e';

    /** Runs a task. One in N tasks, by number, kills its worker in the first attempt; 0 for none. */
    public static function run(string $log, int $number, int $seed = 0, int $oneIn = 0, int $microseconds = 0): int
    {
        self::write($log, self::STARTED, $number);
        if ($oneIn > 0 && TaskContext::current()->attempt === 1 && crc32("{$seed} {$number}") % $oneIn === 0) {
            posix_kill((int) getmypid(), \SIGKILL);
        }
        usleep($microseconds);
        self::write($log, self::ENDED, $number);

        return $number;
    }

    /** @return \Closure(int): int */
    public static function writer(string $log): \Closure
    {
        return static fn(int $number): int => self::run($log, $number);
    }

    /** Waits until the file exists. */
    public static function runUntil(string $log, int $number, string $file): int
    {
        self::write($log, self::STARTED, $number);
        while (!is_file($file)) {
            usleep(1000);
            clearstatcache();
        }
        self::write($log, self::ENDED, $number);

        return $number;
    }

    /** @return \Generator<int, int> */
    public static function count(string $log, int $number): \Generator
    {
        self::write($log, self::STARTED, $number);
        for ($i = 0; ; ++$i) {
            yield $i;
            usleep(10_000);
        }
    }

    public static function die(string $words): never
    {
        fwrite(\STDERR, $words);
        posix_kill((int) getmypid(), \SIGKILL);
        exit(1);
    }

    /** @return array<int, int> started runs by job number */
    public static function started(string $log): array
    {
        return self::read($log, self::STARTED);
    }

    /** @return array<int, int> finished runs by job number */
    public static function ended(string $log): array
    {
        return self::read($log, self::ENDED);
    }

    private static function write(string $log, string $what, int $number): void
    {
        file_put_contents($log, "{$what}{$number}\n", \FILE_APPEND); // a single write at the current end of the file
    }

    /** @return array<int, int> */
    private static function read(string $log, string $what): array
    {
        $counts = [];
        foreach (is_file($log) ? (array) file($log, \FILE_IGNORE_NEW_LINES) : [] as $line) {
            if (str_starts_with((string) $line, $what)) {
                $number = (int) substr((string) $line, 1);
                $counts[$number] = ($counts[$number] ?? 0) + 1;
            }
        }

        return $counts;
    }
}
