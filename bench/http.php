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
        'head-timeout' => '10',
        'json' => '',
        ...Entrants::OPTIONS,
    ],
    <<<'TEXT'
        Usage: php bench/http.php [options]; defaults are in parentheses
          --only LIST         measure only these, separated by commas: text, text-same, json, echo, one,
                              connections, two, wait, idle, soak, slow, tls, psr7, collide, crowd, pieces, pieces-gzip,
                              pieces-large (all)
          -n N                send N requests in soak (1000000)
          --connections N     open N connections (50), except in one, connections (32 and 256) and wait
                              (256)
          --rounds N          measure each contestant N times, in turn (5)
          --seconds S         load the server for S seconds in each measurement, after a second that does
                              not count (3)
          --peers LIST        compare with these, separated by commas: bare, fpm, workerman, react, amp;
                              or all that are installed, or none (all)
          --autoload FILE     load workerman, react or amp through FILE; may be given several times
          --head-timeout SECONDS
                              wait this long for the head of a request, which slow clients exceed (10)
          --against DIR       also measure the checkout of Spindle in DIR, and print the ratios to it
          --first             measure only the first of Spindle's contestants, without peers
          --json FILE         write the raw data to FILE

        TEXT,
);
if (!extension_loaded('posix') || !is_dir('/proc/self')) {
    throw new UsageException(
        'servers are measured and ended with ext-posix and /proc, of which one is missing on this machine',
    );
}
Signals::exitOnSignal();

$comparisonOptions = ComparisonOptions::of($options);
$json = $options->output('json');
(new Comparison($comparisonOptions))->run($json);
