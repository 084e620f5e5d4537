<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Aircraft;

use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Processes;

/**
 * A cluster that goes down and comes back. It runs in a separate process, since restarts block and its clients must not
 * be blocked; see {@see \Spindle\Tests\Host}.
 */
final class OutageProgram
{
    /**
     * Starts the cluster, takes it down `$outages` times, and stops it.
     *
     * Files in the directory synchronize it with the test. The test creates go1, go2, … for the outages and stop for
     * the end. This process creates dsn after the start and back1, back2, … after the outages.
     */
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

    private static function killAll(TemporaryPostgres $cluster): void
    {
        $all = array_keys(Processes::childrenOf((int) $cluster->postmasterPid()));
        $cluster->kill();
        foreach ($all as $pid) {
            posix_kill($pid, \SIGKILL);
        }
        usleep(700_000); // length of the outage
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
