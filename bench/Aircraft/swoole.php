<?php

declare(strict_types=1);

/*
 * The four requests of the load, written by hand for the highest speed of one process of Swoole: swoole.php HOST:PORT.
 *
 * PDO waits through Swoole's hooks, on a pool of connections that exist before the first request. No router, no
 * container, no messages.
 */

use Spindle\Bench\Aircraft\PlainRequest;
use Swoole\Coroutine\Channel;
use Swoole\Http\Request;
use Swoole\Http\Response;
use Swoole\Http\Server;
use Swoole\Runtime;

require __DIR__ . '/PlainRequest.php';

/** @var array{string, string} $argv */
[$host, $port] = explode(':', $argv[1]);
$connections = max(1, (int) getenv('PLAIN_CONNECTIONS'));

Runtime::enableCoroutine(SWOOLE_HOOK_ALL);
$server = new Server($host, (int) $port, SWOOLE_BASE);
$server->set(['worker_num' => 1, 'log_level' => SWOOLE_LOG_ERROR, 'http_compression' => false]);
$pool = new Channel($connections);

$server->on('workerStart', static function () use ($pool, $connections): void {
    for ($i = 0; $i < $connections; ++$i) {
        // Emulated prepares need one round trip per request. A real prepared statement would need three.
        $pool->push(new PDO((string) getenv('PLAIN_DSN'), options: [
            PDO::ATTR_EMULATE_PREPARES => true,
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
        ]));
    }
});

/** @return array{int, array<string, string>, string} */
$run = static function (PlainRequest $request) use ($pool): array {
    $connection = $pool->pop();
    assert($connection instanceof PDO);
    try {
        return $request->run($connection);
    } catch (PDOException $failure) {
        return [500, [], $failure->getMessage()];
    } finally {
        $pool->push($connection);
    }
};

$server->on('request', static function (Request $message, Response $response) use ($run): void {
    /** @var array{request_uri: string, request_method: string} $line */
    $line = $message->server;
    /** @var array<string, string> $headers */
    $headers = $message->header;
    $request = PlainRequest::read(
        $line['request_method'],
        $line['request_uri'],
        $headers['content-type'] ?? '',
        static fn(): string => (string) $message->rawContent(),
    );
    [$status, $fields, $body] = is_array($request) ? $request : $run($request);
    $response->status($status);
    foreach ($fields as $name => $value) {
        $response->header($name, $value);
    }
    $response->end($body);
});
$server->start();
