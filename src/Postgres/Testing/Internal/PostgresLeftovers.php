<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing\Internal;

use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Internal\Testing\Removal;
use Spindle\Internal\Testing\TestServerState;
use Spindle\Internal\Testing\Wait;
use Spindle\Internal\Warnings;

/** Removes the processes, shared memory and files of a server. */
final class PostgresLeftovers implements Removal
{
    /** Maximum seconds that an immediate shutdown may take. After that, the processes are killed. */
    private const GRACE_SECONDS = 0.7;

    private const SIGQUIT = 3;
    private const SIGKILL = 9;
    private const SIGCONT = 18;

    /** Returns the state of a server. The name of the directory identifies the server's processes. */
    public static function of(string $directory): TestServerState
    {
        return new TestServerState($directory, 'postgres|initdb');
    }

    /**
     * Returns the lines of postmaster.pid: process id, data directory, start time, port, socket directory, listen
     * address, shared memory (key and id), and state. A killed server does not remove the file.
     *
     * @see https://github.com/postgres/postgres/blob/master/src/include/utils/pidfile.h
     *
     * @return array<int, string> empty when the file does not exist
     */
    public static function pidFileLines(string $directory): array
    {
        $file = "{$directory}/data/postmaster.pid";
        $lines = Warnings::suppressed(static fn(): array|false => file($file, \FILE_IGNORE_NEW_LINES));

        return $lines === false ? [] : $lines;
    }

    public static function remove(string $directory): void
    {
        $state = self::of($directory);
        $state->signal(self::SIGCONT);
        $processes = $state->processes();
        $postmaster = (int) (self::pidFileLines($directory)[0] ?? 0);
        if (isset($processes[$postmaster])) {
            Signals::send($postmaster, self::SIGQUIT);
        }
        foreach (array_keys($processes, 'initdb', true) as $initdb) {
            // When initdb is killed, the input of the server that it started ends. Then the server cleans up and ends.
            Signals::send($initdb, self::SIGKILL);
        }
        Wait::until(static fn(): bool => $state->processes() === [], self::GRACE_SECONDS);
        $state->remove(static fn() => self::removeSharedMemory($directory));
    }

    /** Removes the shared memory named in postmaster.pid. A server that was not killed has removed both itself. */
    private static function removeSharedMemory(string $directory): void
    {
        if (preg_match('/^ *\d+ +(\d+)$/', self::pidFileLines($directory)[6] ?? '', $match) === 1) {
            exec("ipcrm -m {$match[1]} 2>&1");
        }
    }
}
