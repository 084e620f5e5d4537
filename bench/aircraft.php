<?php

declare(strict_types=1);

/*
 * Measures the aircraft application of examples/: the same handlers under Spindle's server and under nginx with
 * PHP-FPM, on the same database. Also measured: plain PHP without a framework under FPM, and pgbench as the ceiling.
 */

use Spindle\Bench\Aircraft\Comparison;
use Spindle\Bench\Aircraft\ComparisonOptions;
use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\Signals;
use Spindle\Bench\Support\UsageException;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$options = Options::read(
    $argv,
    [
        'only' => 'all',
        'n' => '1000000',
        'clients' => '50',
        'cycles' => '200',
        'connections' => '100',
        'rounds' => '5',
        'seconds' => '5',
        'peers' => 'all',
        'swoole' => '',
        'json' => '',
        'html' => '',
        ...Entrants::OPTIONS,
    ],
    <<<'TEXT'
        Usage: php bench/aircraft.php [options]; defaults are in parentheses
          --only LIST      measure only these, separated by commas: crud, latency, sleep, certificates,
                           bulk (all)
          -n N             use N rows in bulk (1000000)
          --clients N      use N clients in crud and latency, eight times as many with 50 ms of latency,
                           and twice as many in sleep (50)
          --cycles N       create, read, update and delete N times for each client of crud (200)
          --connections N  let Spindle open N connections to the database in latency and sleep (100)
          --rounds N       measure each contestant N times, in turn (5)
          --seconds S      load the server for S seconds in each measurement of latency and certificates
                           (5)
          --peers LIST     compare with these, separated by commas: fpm, fpm-preloaded, fpm-plain, swoole
                           (crud only), pgbench; or all that are installed, or none (all)
          --swoole FILE    load Swoole from FILE, an extension that was built with --enable-swoole-pgsql
          --against DIR    also measure the checkout of Spindle in DIR, and print the ratios to it
          --first          measure only the first of Spindle's contestants, without peers
          --json FILE      write the raw data to FILE
          --html FILE      write a report with charts to FILE, a page that needs no other file

        TEXT,
);
if (!extension_loaded('posix') || !is_dir('/proc/self')) {
    throw new UsageException(
        'servers are measured and ended with ext-posix and /proc, of which one is missing on this machine',
    );
}
Signals::exitOnSignal();

$comparisonOptions = ComparisonOptions::of($options);
[$json, $html] = [$options->output('json'), $options->output('html')];
(new Comparison($comparisonOptions))->run($json, $html);
