<?php

declare(strict_types=1);

/*
 * A server of bench/http-client.php: prints its address, and serves until its standard input is closed.
 */

use Psr\Http\Message\ServerRequestInterface;
use Revolt\EventLoop;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Response;

use function Amp\delay;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$file = $argv[1] ?? '';
$text = str_repeat('x', 1024);
$receive = static function (ServerRequestInterface $request): Response {
    $body = $request->getBody();
    $bytes = 0;
    while (!$body->eof()) {
        $bytes += strlen($body->read(65_536));
    }

    return Response::text((string) $bytes);
};
$events = static function (): Generator {
    yield 'first';
    delay(600);
};
$server = new HttpServer(
    static fn(ServerRequestInterface $request): Response => match ($request->getUri()->getPath()) {
        '/get' => Response::text($text),
        '/upstream' => (static function (): Response {
            delay(0.1);

            return Response::text('late');
        })(),
        '/events' => Response::serverSentEvents($events()),
        '/download' => Response::file($file, $request),
        '/upload' => $receive($request),
        default => Response::text('unknown', 404),
    },
    new HttpServerOptions(
        maxBodyBytes: PHP_INT_MAX,
        maxRequests: PHP_INT_MAX,
        maxConnectionsPerAddress: PHP_INT_MAX,
    ),
);
[$address] = $server->start('127.0.0.1:0');
echo "{$address}\n";
EventLoop::onReadable(STDIN, static fn() => exit(0));
EventLoop::run();
