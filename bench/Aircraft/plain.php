<?php

declare(strict_types=1);

/*
 * The four requests of the load, written by hand for the highest speed of PHP-FPM: PDO on a persistent connection, no
 * router, no container, no messages.
 */

use Spindle\Bench\Aircraft\PlainRequest;

require __DIR__ . '/PlainRequest.php';

/** @var array{REQUEST_URI: string, REQUEST_METHOD: string, CONTENT_TYPE?: string} $server */
$server = $_SERVER;
$request = PlainRequest::read(
    $server['REQUEST_METHOD'],
    (string) strtok($server['REQUEST_URI'], '?'),
    $server['CONTENT_TYPE'] ?? '',
    static fn(): string => (string) file_get_contents('php://input'),
);

// Emulated prepares need one round trip per request. A real prepared statement would need three, and would not outlive
// the request.
[$status, $fields, $body] = is_array($request) ? $request : $request->run(new PDO(
    (string) getenv('PLAIN_DSN'),
    options: [
        PDO::ATTR_PERSISTENT => true,
        PDO::ATTR_EMULATE_PREPARES => true,
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
    ],
));

http_response_code($status);
foreach ($fields as $name => $value) {
    header("{$name}: {$value}");
}
echo $body;
