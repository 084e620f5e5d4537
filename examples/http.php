<?php

declare(strict_types=1);

// An HTTP server with clients in the same process: ten waiting requests take as long as one.

use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\HttpException;
use Spindle\Http\HttpServer;
use Spindle\Http\Middleware\ErrorHandler;
use Spindle\Http\Middleware\RequestId;
use Spindle\Http\MiddlewareStack;
use Spindle\Http\Response;

use function Amp\async;
use function Amp\delay;
use function Amp\Future\await;

require __DIR__ . '/autoload.php';

$handler = static function (ServerRequestInterface $request): Response {
    switch ($request->getUri()->getPath()) {
        case '/slow':
            delay(0.2);     // stands for a query, a command or a task; other requests go on

            return Response::text("slow\n");
        case '/numbers':
            return Response::stream((static function (): Generator {
                foreach (range(1, 3) as $number) {
                    yield "{$number}\n";
                    delay(0.01);
                }
            })(), 'text/plain');
        default:
            throw new HttpException(404, 'There is nothing here');
    }
};
$server = new HttpServer(new MiddlewareStack($handler, new RequestId(), new ErrorHandler()));
[$address] = $server->start('127.0.0.1:0');

// A client that suspends its fiber, like HTTP clients for this event loop.
$get = static function (string $path) use ($address): string {
    $socket = Amp\Socket\connect($address);
    $socket->write("GET {$path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");

    return Amp\ByteStream\buffer($socket);
};

$begin = hrtime(true);
$answers = await(array_map(static fn() => async($get, '/slow'), range(1, 10)));
printf(
    "%d answers in %s\n",
    count($answers),
    (hrtime(true) - $begin) / 1e9 < 1.0 ? 'the time of one' : 'more than that',
);
echo str_contains($get('/numbers'), "\r\n\r\n2\r\n1\n\r\n2\r\n2\n\r\n2\r\n3\n\r\n0\r\n")
    ? "three chunks\n"
    : "no chunks\n";
echo strtok($get('/else'), "\r"), "\n";
$server->close();           // after all received requests are answered
printf("%d requests were answered\n", array_sum($server->statistics()->answeredRequests));
