<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Spindle\Worker\TaskContext;

/** Tasks of these tests, as static methods because they may not capture anything. */
final class RecordedTasks
{
    /**
     * Writes the worker's process id into a file of the attempt, and takes longer in the first attempts.
     *
     * @return int the attempt
     */
    public static function linger(string $directory, int $attempts = 1, float $seconds = 60.0): int
    {
        $attempt = TaskContext::current()->attempt;
        file_put_contents("{$directory}/new", (string) getmypid());
        rename("{$directory}/new", "{$directory}/{$attempt}");
        if ($attempt <= $attempts) {
            usleep((int) ($seconds * 1e6));
        }

        return $attempt;
    }

    public static function die(): never
    {
        posix_kill((int) getmypid(), \SIGKILL);
        exit(1);
    }
}
