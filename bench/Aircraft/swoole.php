<?php

declare(strict_types=1);

/*
 * The four requests of the load, written by hand for the highest speed of one process of Swoole: swoole.php HOST:PORT.
 *
 * PDO waits through Swoole's hooks, on a pool of connections that exist before the first request. No router, no
 * container, no messages. Status codes, JSON and checks equal those of the application.
 */

use Swoole\Coroutine\Channel;
use Swoole\Http\Request;
use Swoole\Http\Response;
use Swoole\Http\Server;
use Swoole\Runtime;

const ALL = 'number, title, serial_number, assembly_date, added_at';

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
            PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
        ]));
    }
});

$server->on('request', static function (Request $request, Response $response) use ($pool): void {
    $problem = static function (int $status, string $detail) use ($response): void {
        $response->status($status);
        $response->header('Content-Type', 'application/problem+json');
        $response->end(json_encode(['status' => $status, 'detail' => $detail], JSON_THROW_ON_ERROR));
    };
    /** @var array{request_uri: string, request_method: string} $line */
    $line = $request->server;
    if (preg_match('~^/aircraft(?:/([A-Z0-9][A-Z0-9-]{0,15}))?$~D', $line['request_uri'], $match) !== 1) {
        $problem(404, 'There is nothing here');

        return;
    }
    $number = $match[1] ?? null;
    $method = $line['request_method'];
    [$title, $serialNumber, $date] = ['', '', null];
    if ($method === 'POST' || $method === 'PUT') {
        /** @var array<string, string> $headers */
        $headers = $request->header;
        if (!str_starts_with($headers['content-type'] ?? '', 'application/json')) {
            $problem(415, 'The body must be JSON');

            return;
        }
        $fields = json_decode((string) $request->rawContent(), true, 8);
        $fields = is_array($fields) ? $fields : [];
        [$title, $serialNumber] = [$fields['title'] ?? null, $fields['serial_number'] ?? null];
        $date = $fields['assembly_date'] ?? null;
        $isText = static fn(mixed $text, int $most): bool => is_string($text)
            && preg_match('/^[^\p{C}]*$/Du', $text) === 1 && trim($text) !== '' && mb_strlen($text) <= $most;
        $isDate = $date === null || is_string($date)
            && preg_match('/^(\d{4})-(\d\d)-(\d\d)$/D', $date, $part) === 1
            && checkdate((int) $part[2], (int) $part[3], (int) $part[1]);
        $number = $method === 'POST' ? $fields['number'] ?? null : $number;
        $isNumber = is_string($number) && preg_match('/^[A-Z0-9][A-Z0-9-]{0,15}$/D', $number) === 1;
        if (!$isText($title, 200) || !$isText($serialNumber, 64) || !$isDate || !$isNumber) {
            $problem(422, 'A field is not as it must be');

            return;
        }
    }
    if ($number === null) {
        $problem(405, "{$method} is not possible here");

        return;
    }
    $connection = $pool->pop();
    assert($connection instanceof PDO);
    try {
        $run = static function (string $sql, array $parameters) use ($connection): PDOStatement {
            $statement = $connection->prepare($sql);
            $statement->execute($parameters);

            return $statement;
        };
        [$row, $status] = match ($method) {
            'POST' => [$run(
                'INSERT INTO aircraft (number, title, serial_number, assembly_date) VALUES (?, ?, ?, ?) RETURNING '
                    . ALL,
                [$number, $title, $serialNumber, $date],
            )->fetch(), 201],
            'GET' => [$run('SELECT ' . ALL . ' FROM aircraft WHERE number = ?', [$number])->fetch(), 200],
            'PUT' => [$run(
                'UPDATE aircraft SET title = ?, serial_number = ?, assembly_date = ? WHERE number = ? RETURNING ' . ALL,
                [$title, $serialNumber, $date, $number],
            )->fetch(), 200],
            'DELETE' => [$run('DELETE FROM aircraft WHERE number = ?', [$number])->rowCount() === 1 ? [] : false, 204],
            default => [[], 405],
        };
    } catch (PDOException $failure) {
        [$row, $status] = [[], $failure->getCode() === '23505' ? 409 : 500];
    } finally {
        $pool->push($connection);
    }
    if (!is_array($row)) {
        $problem(404, 'There is no such aircraft');
    } elseif ($status >= 400) {
        $problem($status, "{$method} is not possible: {$status}");
    } elseif ($status === 204) {
        $response->status(204);
        $response->end();
    } else {
        /** @var array{added_at: string} $row */
        $row['added_at'] = (new DateTimeImmutable($row['added_at']))->format('Y-m-d\TH:i:s.uP');
        $response->status($status);
        if ($status === 201) {
            $response->header('Location', "/aircraft/{$number}");
        }
        $response->header('Content-Type', 'application/json');
        $response->end(json_encode($row, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR));
    }
});
$server->start();
