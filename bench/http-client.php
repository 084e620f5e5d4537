<?php

declare(strict_types=1);

/*
 * Measures the HTTP client against Guzzle with curl_multi, undici of Node.js, and curl. The server runs in a process of
 * its own on the loopback.
 */

use Spindle\Bench\HttpClient\Contestant;
use Spindle\Bench\HttpClient\Measurement;
use Spindle\Bench\HttpClient\TestServer;
use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\Report;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Series;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$options = Options::read($argv, [
    'n' => '20000', 'fibers' => '1,8,64,256', 'megabytes' => '256', 'streams' => '400', 'rounds' => '5',
    'only' => 'get,upstream,events,download,upload', 'peers' => 'guzzle,curl', 'undici' => '', 'json' => '',
], <<<'TEXT'
    Usage: php bench/http-client.php [options]
      --only LIST         get: GET of 1 KB over kept connections; upstream: ten calls of 100 ms side by side;
                          events: memory of open streams of events; download, upload: a large body (all)
      -n N                requests of get (20000)
      --fibers LIST       requests at the same time (1,8,64,256)
      --megabytes N       size of the large body (256)
      --streams N         open streams of events (400)
      --peers LIST        guzzle, undici, curl (guzzle,curl)
      --undici DIR        folder in which undici was installed with npm
      --rounds N          measurements of each, in turn (5)
      --json FILE         where the raw data goes

    TEXT);
$server = TestServer::start($options->int('megabytes') << 20);
$peers = $options->names('peers', array_map(static fn(Contestant $one): string => $one->value, Contestant::cases()));
$report = new Report(['n' => $options->int('n'), 'megabytes' => $options->int('megabytes')]);
$measurements = array_map(static fn(Measurement $one): string => $one->value, Measurement::cases());
foreach ($options->names('only', $measurements) as $name) {
    $measurement = Measurement::from($name);
    foreach ($measurement === Measurement::Get ? $options->ints('fibers', 1) : [1] as $fibers) {
        $contestants = array_filter(
            Contestant::cases(),
            static fn(Contestant $one): bool => $one->measures($measurement)
                && ($one === Contestant::Spindle || in_array($one->value, $peers, true)),
        );
        $series = array_values(array_map(static fn(Contestant $one): Series => new Series(
            $one->label(),
            static fn(Series $self): float => $one->measure($self, $measurement, $server, [
                'n' => $measurement === Measurement::Events ? $options->int('streams') : $options->int('n'),
                'fibers' => $fibers,
                'bytes' => $options->int('megabytes') << 20,
                'undici' => $options->text('undici'),
            ]),
            $measurement === Measurement::Get ? "{$fibers} at a time" : $name,
        ), $contestants));
        $spindle = $series[0] ?? throw new LogicException('Spindle is a contestant of each measurement');
        Rounds::run($series, $options->int('rounds'));
        $report->table($measurement->title($fibers), $series, [
            Column::median($measurement->unit(), $measurement->decimals()),
            Column::range($measurement->decimals()),
            Column::ratioOf('Spindle ÷ it', $spindle),
            Column::raw('CPU µs each', 'cpu', 1),
            Column::megabytes('MB', 'peak'),
        ]);
    }
}
$report->finish($options->output('json'));
