<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\RestartsCluster;
use Spindle\Tests\Processes;

/** Restarts a server in a separate process, so that its clients see all phases; see {@see \Spindle\Tests\Host}. */
final class RestartProgram
{
    use RestartsCluster;

    /** Starts the server, restarts it N times in several ways, each time on a signal by a file, and stops it. */
    public static function run(string $directory, int $restarts, int $seed): int
    {
        mt_srand($seed);
        $cluster = Cluster::start(['max_connections' => 20, 'fsync' => false]);
        self::tell("{$directory}/dsn", $cluster->dsn());
        for ($i = 1; $i <= $restarts; ++$i) {
            self::await("{$directory}/go{$i}");
            usleep(mt_rand(50_000, 400_000)); // a random moment
            match ($i % 4) {
                0 => self::killABackend($cluster),
                1 => $cluster->restart(),
                2 => self::killAll($cluster),
                3 => self::endAtOnce($cluster),
            };
            self::tell("{$directory}/restarts", (string) $i);
        }
        self::await("{$directory}/stop");
        $cluster->stop();

        return $restarts;
    }

    /** Kills a backend. The postmaster then ends all others, and recovers. */
    private static function killABackend(TemporaryPostgres $cluster): void
    {
        $backends = preg_grep(
            '/postgres: .*(idle|SELECT|INSERT|COMMIT|BEGIN)/',
            Processes::childrenOf((int) $cluster->postmasterPid()),
        );
        $backend = array_key_first(\is_array($backends) ? $backends : []);
        if ($backend !== null) {
            posix_kill((int) $backend, \SIGKILL);
        }
    }

    private static function killAll(TemporaryPostgres $cluster): void
    {
        self::killProcesses($cluster);
        $cluster->restart();
    }

    private static function endAtOnce(TemporaryPostgres $cluster): void
    {
        $pid = (int) $cluster->postmasterPid();
        posix_kill($pid, \SIGQUIT);
        while ($cluster->postmasterPid() !== null) {
            usleep(1_000);
        }
        $cluster->restart();
    }
}
