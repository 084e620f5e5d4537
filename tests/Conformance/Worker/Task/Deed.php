<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

use Spindle\Worker\TaskContext;

/** Tasks that do something to their worker, or tell of it. */
final class Deed
{
    public static int $count = 0;

    /** @var list<string> */
    public static array $kept = [];

    /** The system's number of the process, or of the thread, that is the worker. */
    public static function worker(): int
    {
        return (int) basename((string) readlink('/proc/thread-self'));
    }

    /** How often it was called in this worker. */
    public static function count(): int
    {
        return ++self::$count;
    }

    /** Keeps so many bytes for good. */
    public static function keep(int $bytes): int
    {
        self::$kept[] = str_repeat('x', $bytes);

        return self::worker();
    }

    public static function dieOf(int $signal): never
    {
        posix_kill((int) getmypid(), $signal);
        // A signal comes to the process before the call returns, or nearly.
        while (true) {
            usleep(1000);
        }
    }

    /** Runs on and looks at nothing. */
    public static function hang(string $started = ''): never
    {
        if ($started !== '') {
            file_put_contents($started, self::worker());
        }
        while (true) {
            usleep(1000);
        }
    }

    /** Takes more memory than there is. */
    public static function exhaust(): int
    {
        $all = [];
        while (\count($all) < 1 << 20) {
            $all[] = str_repeat('x', 1 << 20);
        }

        return \count($all);
    }

    /** Says in a file that it ran. */
    public static function note(string $file): void
    {
        file_put_contents($file, TaskContext::current()->attempt . "\n", \FILE_APPEND);
    }

    /** @return list<string> what its descriptors are */
    public static function descriptors(): array
    {
        $descriptors = [];
        foreach (array_diff((array) scandir('/proc/self/fd'), ['.', '..']) as $descriptor) {
            $descriptors[] = (string) @readlink("/proc/self/fd/{$descriptor}");
        }

        return $descriptors;
    }
}
