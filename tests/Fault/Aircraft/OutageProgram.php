<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Aircraft;

use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\RestartsCluster;

/**
 * A cluster that goes down and comes back. It runs in a separate process, since restarts block and its clients must not
 * be blocked; see {@see \Spindle\Tests\Host}.
 */
final class OutageProgram
{
    use RestartsCluster;

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
        self::killProcesses($cluster);
        usleep(700_000); // length of the outage
        $cluster->restart();
    }
}
