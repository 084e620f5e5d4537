<?php

declare(strict_types=1);

// An HTTP client: ten calls that each wait 0.1 s for a server take as long as one.

use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\RequestBody;
use Spindle\Http\HttpServer;
use Spindle\Http\Response;

use function Amp\async;
use function Amp\delay;
use function Amp\Future\await;

require __DIR__ . '/autoload.php';

// The server that is called, in the same process.
$server = new HttpServer(static function (ServerRequestInterface $request): Response {
    delay(0.1);

    return Response::json(['path' => $request->getUri()->getPath(), 'body' => (string) $request->getBody()]);
});
[$address] = $server->start('127.0.0.1:0');
$url = str_replace('tcp:', 'http:', $address);

$client = new HttpClient();
$begin = microtime(true);
$answers = await(array_map(
    static fn(int $number) => async(
        static fn(): string => (string) $client->get("{$url}/{$number}")->getBody(),
    ),
    range(1, 10),
));
ksort($answers); // await() returns them with their keys, in the order in which they ended
printf("%d answers after %.1f s\n", count($answers), microtime(true) - $begin);
echo json_encode(array_slice($answers, 0, 2), JSON_THROW_ON_ERROR), "\n";

$response = $client->post("{$url}/people", RequestBody::json(['name' => 'Ada']));
echo $response->getStatusCode(), ' ', $response->getBody(), "\n";

$client->close();
$server->close();
