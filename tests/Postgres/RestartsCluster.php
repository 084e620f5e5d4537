<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Tests\Processes;

/** A program that restarts a cluster in a separate process, and whose steps files in a directory synchronize. */
trait RestartsCluster
{
    private static function killProcesses(TemporaryPostgres $cluster): void
    {
        $all = array_keys(Processes::childrenOf((int) $cluster->postmasterPid()));
        $cluster->kill();
        foreach ($all as $pid) {
            posix_kill($pid, \SIGKILL);
        }
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
