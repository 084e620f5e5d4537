<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Aircraft;

use Spindle\Postgres\Testing\TemporaryCluster;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Processes;

/**
 * A cluster that goes down and comes back, in a process of its own so that its clients see all of it; see
 * {@see \Spindle\Tests\Host}.
 */
final class OutageProgram
{
    /** Starts it, has it go down so many times, each time that it is told to by a file, and stops it then. */
    public static function run(string $directory, int $outages): int
    {
        $cluster = Cluster::start(['max_connections' => 40]);
        self::tell("{$directory}/dsn", $cluster->dsn());
        for ($i = 1; $i <= $outages; ++$i) {
            self::await("{$directory}/go{$i}");
            $i % 2 === 1 ? $cluster->restart() : self::killAll($cluster);
            self::tell("{$directory}/back{$i}", '');
        }
        self::await("{$directory}/stop");
        $cluster->stop();

        return $outages;
    }

    private static function killAll(TemporaryCluster $cluster): void
    {
        $all = array_keys(Processes::childrenOf((int) $cluster->postmasterPid()));
        $cluster->kill();
        foreach ($all as $pid) {
            posix_kill($pid, \SIGKILL);
        }
        usleep(700_000); // the length of the outage, which clients go through
        $cluster->restart();
    }

    private static function tell(string $file, string $text): void
    {
        file_put_contents("{$file}.new", $text);
        rename("{$file}.new", $file);
    }

    private static function await(string $file): void
    {
        for ($end = hrtime(true) + 120_000_000_000; !is_file($file) && hrtime(true) < $end;) {
            usleep(1_000);
            clearstatcache();
        }
    }
}
