<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing\Internal;

use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Internal\Testing\Removal;
use Spindle\Internal\Testing\TestServerState;
use Spindle\Internal\Testing\Wait;

/** Finds what a cluster has left outside of its files and processes, from the server's own records. */
final class ClusterLeftovers implements Removal
{
    /** Seconds to wait for a server after an immediate shutdown. */
    private const GRACE_SECONDS = 0.7;

    private const SIGQUIT = 3;
    private const SIGKILL = 9;
    private const SIGCONT = 18;

    /** Finds remains by the directory's name, which is also the cluster's name and so part of all command lines. */
    public static function of(string $directory): TestServerState
    {
        return new TestServerState($directory, 'postgres|initdb');
    }

    /**
     * Returns the lines of postmaster.pid: pid, data directory, start time, port, socket directory, listen address, key
     * and id of its shared memory, and state. The format is that of src/include/utils/pidfile.h of PostgreSQL.
     *
     * @return array<int, string> empty when there is no such file; a killed server leaves it
     */
    public static function postmaster(string $directory): array
    {
        $lines = @file("{$directory}/data/postmaster.pid", \FILE_IGNORE_NEW_LINES);

        return $lines === false ? [] : $lines;
    }

    public static function remove(string $directory): void
    {
        $remains = self::of($directory);
        $remains->signal(self::SIGCONT);
        $processes = $remains->processes();
        $postmaster = (int) (self::postmaster($directory)[0] ?? 0);
        if (isset($processes[$postmaster])) {
            Signals::send($postmaster, self::SIGQUIT);
        }
        foreach (array_keys($processes, 'initdb', true) as $initdb) {
            // the server that reads its output ends with its input, and cleans up
            Signals::send($initdb, self::SIGKILL);
        }
        Wait::until(static fn(): bool => $remains->processes() === [], self::GRACE_SECONDS);
        $remains->remove(static fn() => self::removeSharedMemory($directory));
    }

    /** Removes the shared memory. A server that shuts down normally removes it, and the record of its id too. */
    private static function removeSharedMemory(string $directory): void
    {
        if (preg_match('/^ *\d+ +(\d+)$/', self::postmaster($directory)[6] ?? '', $match) === 1) {
            exec("ipcrm -m {$match[1]} 2>&1");
        }
    }
}
