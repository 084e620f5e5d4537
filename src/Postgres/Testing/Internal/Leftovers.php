<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing\Internal;

use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Internal\Testing\Remains;
use Spindle\Internal\Testing\Removal;
use Spindle\Internal\Testing\Wait;

/** What there is of a cluster outside of this process, beside its files and processes: what a server has written of itself. */
final class Leftovers implements Removal
{
    /** Seconds that a server is given to end at once. */
    private const GRACE = 0.7;

    private const SIGQUIT = 3;
    private const SIGKILL = 9;
    private const SIGCONT = 18;

    /** The directory's name is in all command lines, for it is the cluster's name as well. */
    public static function of(string $directory): Remains
    {
        return new Remains($directory, 'postgres|initdb');
    }

    /**
     * The lines of postmaster.pid: pid, data directory, time of the start, port, socket directory, listen address, key and
     * id of its shared memory, and its state; see src/include/utils/pidfile.h of PostgreSQL.
     *
     * @return array<int, string> none when there is no such file; a server that was killed leaves it
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
            Signals::send($initdb, self::SIGKILL); // the server that it feeds ends with its input, and cleans up
        }
        Wait::until(static fn(): bool => $remains->processes() === [], self::GRACE);
        $remains->remove(static fn() => self::removeSharedMemory($directory));
    }

    /** A server that ends in an orderly way removes it, and with it what says which one it is. */
    private static function removeSharedMemory(string $directory): void
    {
        if (preg_match('/^ *\d+ +(\d+)$/', self::postmaster($directory)[6] ?? '', $match) === 1) {
            exec("ipcrm -m {$match[1]} 2>&1");
        }
    }
}
