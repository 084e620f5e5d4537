<?php

declare(strict_types=1);

/*
 * Measures one HTTP client for bench/http-client.php, and prints the result as JSON.
 */

use GuzzleHttp\Client;
use GuzzleHttp\Pool;
use GuzzleHttp\Promise\Create;
use Psr\Http\Message\ResponseInterface;
use Spindle\Bench\Support\ProcessStatus;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\RequestBody;
use Spindle\Http\HttpServer;
use Spindle\Http\Response;

use function Amp\async;
use function Amp\delay;
use function Amp\Future\await;

require __DIR__ . '/bootstrap.php';

const MEGABYTE = 1_000_000;

/** @var array{string, string, string, string, string, string, string, string} $argv */
[, $contestant, $measurement, $urls, $count, $fibers, $file, $bytes] = $argv;
[$count, $fibers, $bytes] = [(int) $count, (int) $fibers, (int) $bytes];
$urls = explode(',', $urls);
$url = $urls[0];

$check = static fn(ResponseInterface $response) => strlen((string) $response->getBody()) === 1024
    ? null
    : throw new RuntimeException('the answer is wrong');
$client = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 2000));

$get = static function (int $count) use ($client, $url, $fibers, $check): void {
    $work = static function () use ($client, $url, $check, &$count): void {
        while ($count-- > 0) {
            $check($client->get($url));
        }
    };
    await(array_map(static fn() => async($work), range(1, $fibers)));
};
$guzzleClient = new Client();
$guzzle = static function (int $count) use ($guzzleClient, $url, $fibers, $check): void {
    $requests = static function () use ($guzzleClient, $url, $count): Generator {
        for ($i = 0; $i < $count; ++$i) {
            yield static fn() => $guzzleClient->getAsync($url);
        }
    };
    (new Pool($guzzleClient, $requests(), [
        'concurrency' => $fibers,
        'fulfilled' => $check,
        'rejected' => static fn(mixed $failure) => throw Create::exceptionFor($failure),
    ]))->promise()->wait();
};
$gather = static function () use ($client, $url): int {
    $call = static fn(): string => (string) $client->get($url)->getBody();

    return count(array_keys(await(array_map(static fn() => async($call), range(1, 10))), 'late', true));
};
$handler = '';
if ($measurement === 'upstream') {
    $server = new HttpServer(static fn(): Response => Response::text((string) $gather()));
    $handler = str_replace('tcp:', 'http:', $server->start('127.0.0.1:0')[0]);
}
$upstream = static fn() => (string) $client->get($handler)->getBody() === '10'
    ? null
    : throw new RuntimeException('the answer is wrong');
$events = static function (int $streams) use ($client, $urls): float {
    $open = 0;
    $listen = static function (string $url) use ($client, &$open): void {
        foreach ($client->serverSentEvents($url) as $event) {
            ++$open;
        }
    };
    async($listen, $urls[0]);
    while ($open < 1) {
        delay(0.01);
    }
    $before = ProcessStatus::ofThis()->memory();
    for ($i = 0; $i < $streams; ++$i) {
        async($listen, $urls[$i % count($urls)]);
    }
    while ($open <= $streams) {
        delay(0.01);
    }

    return (ProcessStatus::ofThis()->memory() - $before) / 1024 / $streams;
};
$download = static function () use ($client, $url, $file): void {
    $target = fopen("{$file}.received", 'w');
    assert($target !== false);
    for ($body = $client->get($url)->getBody(); !$body->eof();) {
        fwrite($target, $body->read(1 << 18));
    }
};
$upload = static fn()
    => (string) $client->request('POST', $url, [], RequestBody::file($file))->getBody() === (string) $bytes
        ? null
        : throw new RuntimeException('the server has received another number of bytes');

$status = ProcessStatus::ofThis();
// Connects, and loads the classes.
match ($measurement) {
    'get' => $contestant === 'guzzle' ? $guzzle(2 * $fibers) : $get(2 * $fibers),
    'upstream' => $upstream(),
    default => null,
};
$memory = $status->memory();
[$begin, $cpu] = [hrtime(true), $status->cpu()];
$size = match ($measurement) {
    'get' => $contestant === 'guzzle' ? $guzzle($count) : $get($count),
    'upstream' => $upstream(),
    'events' => $events($count),
    'download' => $download(),
    default => $upload(),
};
$seconds = (hrtime(true) - $begin) / 1e9;
echo json_encode([
    'value' => match ($measurement) {
        'get' => $count / $seconds,
        'upstream' => 1e3 * $seconds,
        'events' => $size,
        default => $bytes / MEGABYTE / $seconds,
    },
    'cpu' => 1e6 * ($status->cpu() - $cpu) / ($measurement === 'get' ? $count : 1),
    'peak' => $status->peak(),
    'growth' => max(0, $status->peak() - $memory),
], JSON_THROW_ON_ERROR);
exit(0);
