<?php

declare(strict_types=1);

/*
 * Measures one HTTP client for bench/http-client.php, and prints the result as JSON.
 */

use GuzzleHttp\Client;
use GuzzleHttp\Pool;
use Psr\Http\Message\ResponseInterface;
use Spindle\Bench\Support\ProcessStatus;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\RequestBody;

use function Amp\async;
use function Amp\delay;
use function Amp\Future\await;

require __DIR__ . '/bootstrap.php';

const MEGABYTE = 1_000_000;

/** @var array{string, string, string, string, string, string, string, string} $argv */
[, $contestant, $measurement, $url, $count, $fibers, $file, $bytes] = $argv;
[$count, $fibers, $bytes] = [(int) $count, (int) $fibers, (int) $bytes];

$check = static fn(ResponseInterface $response) => strlen((string) $response->getBody()) === 1024
    ? null
    : throw new RuntimeException('the answer is wrong');
$client = new HttpClient(new HttpClientOptions(maxConnections: 2000));

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
        'rejected' => static fn(Throwable $failure) => throw $failure,
    ]))->promise()->wait();
};
$events = static function (int $streams) use ($client, $url): float {
    $open = 0;
    $listen = static function () use ($client, $url, &$open): void {
        foreach ($client->events($url) as $event) {
            ++$open;
        }
    };
    async($listen)->ignore();
    while ($open < 1) {
        delay(0.01);
    }
    $before = ProcessStatus::ofThis()->memory();
    for ($i = 0; $i < $streams; ++$i) {
        async($listen)->ignore();
    }
    while ($open <= $streams) {
        delay(0.01);
    }

    return (ProcessStatus::ofThis()->memory() - $before) / 1024 / $streams;
};
$download = static function () use ($client, $url, $file): void {
    $target = fopen("{$file}.spindle", 'w');
    assert($target !== false);
    for ($body = $client->get($url)->getBody(); !$body->eof();) {
        fwrite($target, $body->read(1 << 18));
    }
};

$wait = static fn(): string => (string) $client->get($url)->getBody();

$status = ProcessStatus::ofThis();
if ($measurement === 'get') {
    $contestant === 'guzzle' ? $guzzle(2 * $fibers) : $get(2 * $fibers); // connects
}
[$begin, $cpu] = [hrtime(true), $status->cpu()];
$memory = match ($measurement) {
    'get' => $contestant === 'guzzle' ? $guzzle($count) : $get($count),
    'upstream' => await(array_map(static fn() => async($wait), range(1, 10))),
    'events' => $events($count),
    'download' => $download(),
    default => (string) $client->request('POST', $url, [], RequestBody::file($file))->getBody() === (string) $bytes
        ? null
        : throw new RuntimeException('the server has received another number of bytes'),
};
$seconds = (hrtime(true) - $begin) / 1e9;
echo json_encode([
    'value' => match ($measurement) {
        'get' => $count / $seconds,
        'upstream' => 1e3 * $seconds,
        'events' => $memory,
        default => $bytes / MEGABYTE / $seconds,
    },
    'cpu' => 1e6 * ($status->cpu() - $cpu) / ($measurement === 'get' ? $count : 1),
    'peak' => $status->peak(),
], JSON_THROW_ON_ERROR);
exit(0);
