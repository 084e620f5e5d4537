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
        Usage: php bench/postgres.php [options]; defaults are in parentheses
          --only LIST         measure only these, separated by commas: select, cells, far, unit, update,
                              rows, parameter, stream, copy, sleep, gaps, cancel, acquire (all)
          -n N                run N operations in each measurement (100000 queries of select, 30000 of
                              each of cells, 50 fibers of far, 2000 units, 20000 updates, 1000000 rows of
                              stream and copy, 100 fibers of acquire, 10 of sleep; 100 times rows, once
                              parameter, 3 times gaps and cancel)
          --connections LIST  use these numbers of connections in select, cells, unit and update, each
                              with each of --fibers
          --fibers LIST       use these numbers of fibers (4 × 64, 8 × 64, 4 × 256, 1 × 64 and 1 × 1; the
                              first two in unit and update; in cells 1, 2, 4, 8 and 16 × 8, 64, 256 and
                              1024)
          --rounds N          measure each contestant N times, in turn (5)
          --peers LIST        compare with these, separated by commas: pgsql, pdo, amp, pgbench; or all
                              that are installed, or none (all)
          --bytes N           send a parameter of N bytes (33554432)
          --limit SECONDS     stop a measurement after this time (600)
          --dsn DSN           measure the server of this DSN, in a schema that is dropped at the end (a
                              temporary cluster)
          --against DIR       also measure the checkout of Spindle in DIR, and print the ratios to it
          --first             measure only the first of Spindle's contestants, without peers
          --json FILE         write the raw data to FILE

        TEXT,
);

$comparisonOptions = ComparisonOptions::of($options);
$json = $options->output('json');
$server = $options->has('dsn')
    ? Server::at($options->text('dsn'))
    : Server::start($comparisonOptions->mostConnections(), in_array(Measurement::Gaps, $comparisonOptions->only, true));
try {
    $server->target->toEnvironment();
    (new Comparison($comparisonOptions, $server))->run($json);
} finally {
    $server->stop();
}
