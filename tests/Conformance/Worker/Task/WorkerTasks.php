<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

use Spindle\Worker\TaskContext;

/** Tasks that change their worker, or return information about it. */
final class WorkerTasks
{
    public static int $count = 0;

    /** @var list<string> */
    public static array $kept = [];

    /** Returns the id of the worker's process, or of its thread. */
    public static function worker(): int
    {
        return (int) basename((string) readlink('/proc/thread-self'));
    }

    /** Returns how often it was called in this worker. */
    public static function count(): int
    {
        return ++self::$count;
    }

    /** Keeps this many bytes until the worker ends. */
    public static function keep(int $bytes): int
    {
        self::$kept[] = str_repeat('x', $bytes);

        return self::worker();
    }

    /** Keeps memory until less than 2 MiB of the limit are left. */
    public static function keepNearlyAll(): void
    {
        $limit = ini_parse_quantity(\ini_get('memory_limit'));
        gc_mem_caches(); // otherwise, memory that PHP has freed but kept would count as used
        while (memory_get_usage(true) + (2 << 20) <= $limit) {
            self::keep((2 << 20) - 8192); // PHP allocates 2 MiB for this many bytes
        }
    }

    public static function dieOf(int $signal): never
    {
        posix_kill((int) getmypid(), $signal);
        // The signal may arrive shortly after the call returns.
        while (true) {
            usleep(1000);
        }
    }

    /** Runs until it is killed. */
    public static function hang(string $started = ''): never
    {
        if ($started !== '') {
            file_put_contents($started, self::worker());
        }
        while (true) {
            usleep(1000);
        }
    }

    /** Allocates more memory than the limit. */
    public static function exhaust(): int
    {
        $all = [];
        while (\count($all) < 1 << 20) {
            $all[] = str_repeat('x', 1 << 20);
        }

        return \count($all);
    }

    /** Adds its attempt number to a file. */
    public static function note(string $file): void
    {
        file_put_contents($file, TaskContext::current()->attempt . "\n", \FILE_APPEND);
    }

    /** @return list<string> targets of the worker's descriptors */
    public static function descriptors(): array
    {
        $descriptors = [];
        foreach (array_diff((array) scandir('/proc/self/fd'), ['.', '..']) as $descriptor) {
            $descriptors[] = (string) @readlink("/proc/self/fd/{$descriptor}");
        }

        return $descriptors;
    }
}
