<?php

declare(strict_types=1);

/*
 * Measures the HTTP client: requests over kept connections, calls side by side, open streams of events, large bodies.
 * Peers are Guzzle with curl_multi, undici of Node.js, and curl. The servers run in their own processes on the
 * loopback.
 */

use Spindle\Bench\HttpClient\Comparison;
use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\Signals;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$options = Options::read(
    $argv,
    [
        'only' => 'all',
        'n' => '20000',
        'fibers' => '64',
        'megabytes' => '1024',
        'streams' => '1000',
        'rounds' => '5',
        'peers' => 'all',
        'undici' => '',
        'json' => '',
        ...Entrants::OPTIONS,
    ],
    <<<'TEXT'
        Usage: php bench/http-client.php [options]; defaults are in parentheses
          --only LIST    measure only these, separated by commas: get, upstream, events, download, upload (all)
          -n N           send N requests in get (20000)
          --fibers LIST  send that many requests at the same time in get (64)
          --megabytes N  transfer a body of N times 1,048,576 bytes in download and upload (1024)
          --streams N    open N streams in events, at most 1000 (1000)
          --rounds N     measure each contestant N times, in turn (5)
          --peers LIST   compare with these, separated by commas: guzzle, undici, curl; or all that are installed,
                         or none (all)
          --undici DIR   load undici from the folder in which npm has installed it
          --against DIR  also measure the checkout of Spindle in DIR, and print the ratios to it
          --first        measure only the first of Spindle's contestants, without peers
          --json FILE    write the raw data to FILE

        TEXT,
);
Signals::exitOnSignal();

$comparison = Comparison::of($options);
$json = $options->output('json');
$comparison->run($json);
