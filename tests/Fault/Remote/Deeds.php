<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Spindle\Worker\TaskContext;

/** What tasks of these tests do, which may not have captured anything. */
final class Deeds
{
    /**
     * Says in a file of its attempt which worker has it, and takes its time over the first attempts.
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
