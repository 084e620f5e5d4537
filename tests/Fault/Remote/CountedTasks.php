<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Spindle\Worker\TaskContext;

/** Tasks that record in files when and how often they ran. */
final class CountedTasks
{
    /** Records the run in a file. */
    public static function note(string $file): int
    {
        file_put_contents($file, TaskContext::current()->idempotencyKey . "\n", \FILE_APPEND | \LOCK_EX);

        return TaskContext::current()->attempt;
    }

    /**
     * Records in files of the attempt when it began and, while it runs, the current time, in ns of a clock that all
     * processes of a machine share.
     *
     * @param int $attempts that take long
     *
     * @return int the attempt
     */
    public static function tick(string $directory, int $attempts, float $seconds): int
    {
        $attempt = TaskContext::current()->attempt;
        file_put_contents("{$directory}/{$attempt}.new", (string) hrtime(true));
        rename("{$directory}/{$attempt}.new", "{$directory}/{$attempt}.began");
        for ($end = hrtime(true) + (int) ($seconds * 1e9); $attempt <= $attempts && hrtime(true) < $end; usleep(2000)) {
            file_put_contents("{$directory}/{$attempt}.new", (string) hrtime(true));
            rename("{$directory}/{$attempt}.new", "{$directory}/{$attempt}.ran");
        }

        return $attempt;
    }

    /** @return \Generator<int, int> */
    public static function count(int $to, float $pause): \Generator
    {
        for ($i = 1; $i <= $to; ++$i) {
            usleep((int) ($pause * 1e6));
            yield $i;
        }
    }
}
