<?php

declare(strict_types=1);

/*
 * Measures the HTTP server: plain text, JSON, echoed bodies, waiting, many connections, slow clients, memory. Peers are
 * nginx with PHP-FPM, a bare stream_select loop as the limit, and Workerman, ReactPHP and amphp/http-server if
 * available.
 */

use Spindle\Bench\Http\Comparison;
use Spindle\Bench\Http\ComparisonOptions;
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
        'connections' => '50',
        'rounds' => '5',
        'seconds' => '3',
        'peers' => 'all',
        'autoload' => [],
        'deadline' => '10',
        'json' => '',
        ...Entrants::OPTIONS,
    ],
    <<<'TEXT'
        Usage: php bench/http.php [options]
          --only LIST         between commas, of: text, text-same, json, echo, one, connections, two, wait, idle, soak, slow,
                              tls, psr7, collide, crowd (all)
          -n N                requests of soak (1000000)
          --connections N     of the client, but for one, connections (32 and 256) and wait (256) (50)
          --rounds N          measurements of each contestant, in turn (5)
          --seconds S         of load for each measurement, after a second that does not count (3)
          --peers LIST        between commas, of: bare, fpm, workerman, react, amp; all is those that are there, none is none
          --autoload FILE     by which PHP finds workerman, react or amp; may be given several times
          --deadline SECONDS  for the head of a request, which slow clients do not keep (10)
          --against DIR       measure the checkout of Spindle in this folder, too, and print the ratios to it
          --first             measure only the first of Spindle's contestants, and no peers
          --json FILE         where the raw data goes

        TEXT,
);
if (!extension_loaded('posix') || !is_dir('/proc/self')) {
    throw new UsageException(
        'the processes of servers are measured and ended with ext-posix and /proc; take a PHP and a system that have them',
    );
}
Signals::exitByThem();

$comparisonOptions = ComparisonOptions::of($options);
$json = $options->output('json');
(new Comparison($comparisonOptions))->run($json);
