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
        Usage: php bench/aircraft.php [options]
          --only LIST         between commas, of: crud, latency, sleep, certificates, bulk (all)
          -n N                rows of bulk (1000000)
          --clients N         of crud and latency; with 50 ms of latency eight times as many, and twice as many of sleep (50)
          --cycles N          create, read, update, delete of each client of crud (200)
          --connections N     that Spindle's process may have to the database in latency and sleep (100)
          --rounds N          measurements of each contestant, in turn (5)
          --seconds S         of load for each measurement of latency and certificates (5)
          --peers LIST        between commas, of: fpm, fpm-preloaded, fpm-plain, swoole (crud only), pgbench; all is those
                              that are installed, none is none
          --swoole FILE       of Swoole's extension, which must have been built with --enable-swoole-pgsql
          --against DIR       measure the checkout of Spindle in this folder, too, and print the ratios to it
          --first             measure only the first of Spindle's contestants, and no peers
          --json FILE         where the raw data goes
          --html FILE         where the report goes, with charts, as a page that needs nothing else

        TEXT,
);
if (!extension_loaded('posix') || !is_dir('/proc/self')) {
    throw new UsageException(
        'the processes of servers are measured and ended with ext-posix and /proc; take a PHP and a system that have them',
    );
}
Signals::exitByThem();

$comparisonOptions = ComparisonOptions::of($options);
[$json, $html] = [$options->output('json'), $options->output('html')];
(new Comparison($comparisonOptions))->run($json, $html);
