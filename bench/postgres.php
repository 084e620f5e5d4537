<?php

declare(strict_types=1);

/*
 * Measures the PostgreSQL client and its pool: queries, updates, large data, blocking of the event loop, cancellation
 * and waiting. Peers are ext-pgsql, PDO, amphp/postgres and pgbench.
 */

use Spindle\Bench\Postgres\Comparison;
use Spindle\Bench\Postgres\ComparisonOptions;
use Spindle\Bench\Postgres\Measurement;
use Spindle\Bench\Postgres\Server;
use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$options = Options::read(
    $argv,
    [
        'only' => 'all',
        'n' => '',
        'connections' => '',
        'fibers' => '',
        'rounds' => '5',
        'peers' => 'all',
        'bytes' => '33554432',
        'limit' => '600',
        'dsn' => '',
        'json' => '',
        ...Entrants::OPTIONS,
    ],
    <<<'TEXT'
        Usage: php bench/postgres.php [options]
          --only LIST         between commas, of: select, cells, far, unit, update, rows, parameter, stream, copy, sleep,
                              gaps, cancel, acquire (all)
          -n N                operations of each measurement (each has its own number: 100000 queries of select, 30000 of each of
                              cells, 50 fibers of far, 2000 units,
                              20000 updates, 1000000 rows of stream and copy, 100 who wait of acquire, 10 of sleep; how often:
                              100 of rows, 1 of parameter, 3 of gaps and cancel)
          --connections LIST  of Spindle's contestants of select, cells, unit and update, between commas, each with each of
                              --fibers
          --fibers LIST       the same for fibers (4 × 64, 8 × 64, 4 × 256, 1 × 64 and 1 × 1; the first two of unit and
                              update; of cells 1, 2, 4, 8 and 16 × 8, 64, 256 and 1024)
          --rounds N          measurements of each contestant, in turn (5)
          --peers LIST        between commas, of: pgsql, pdo, amp, pgbench; all is those that are there, none is none
          --bytes N           of the parameter (33554432)
          --limit SECONDS     for one measurement (600)
          --dsn DSN           of a server to measure; its tables are in a schema of their own, dropped at the end
                              (a temporary cluster)
          --against DIR       measure the checkout of Spindle in this folder, too, and print the ratios to it
          --first             measure only the first of Spindle's contestants, and no peers
          --json FILE         where the raw data goes

        TEXT,
);

$comparisonOptions = ComparisonOptions::of($options);
$json = $options->output('json');
$server = $options->has('dsn')
    ? Server::at($options->text('dsn'))
    : Server::start($comparisonOptions->mostConnections(), in_array(Measurement::Gaps, $comparisonOptions->only, true));
try {
    $server->target->give();
    (new Comparison($comparisonOptions, $server))->run($json);
} finally {
    $server->stop();
}
