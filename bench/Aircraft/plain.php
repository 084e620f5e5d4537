<?php

declare(strict_types=1);

/*
 * The four requests of the load, written by hand for the highest speed of PHP-FPM: one file, PDO on a persistent
 * connection, no router, no container, no messages. Status codes, JSON and checks equal those of the application.
 */

$problem = static function (int $status, string $detail): never {
    http_response_code($status);
    header('Content-Type: application/problem+json');
    echo json_encode(['status' => $status, 'detail' => $detail], JSON_THROW_ON_ERROR);
    exit;
};

/** @var array{REQUEST_URI: string, REQUEST_METHOD: string, CONTENT_TYPE?: string} $server */
$server = $_SERVER;
if (preg_match(
    '~^/aircraft(?:/([A-Z0-9][A-Z0-9-]{0,15}))?$~D',
    (string) strtok($server['REQUEST_URI'], '?'),
    $match,
) !== 1) {
    $problem(404, 'There is nothing here');
}
$number = $match[1] ?? null;
$method = $server['REQUEST_METHOD'];

$title = $serialNumber = '';
$date = null;
if ($method === 'POST' || $method === 'PUT') {
    if (!str_starts_with($server['CONTENT_TYPE'] ?? '', 'application/json')) {
        $problem(415, 'The body must be JSON');
    }
    $fields = json_decode((string) file_get_contents('php://input'), true, 8);
    if (!is_array($fields)) {
        $problem(400, 'The body must be a JSON object');
    }
    [
        'title' => $title,
        'serial_number' => $serialNumber,
        'assembly_date' => $date,
    ] = $fields + ['title' => null, 'serial_number' => null, 'assembly_date' => null];
    $isText = static fn(
        mixed $text,
        int $most,
    ): bool => is_string($text)
        && preg_match('/^[^\p{C}]*$/Du', $text) === 1
        && trim($text) !== ''
        && mb_strlen($text) <= $most;
    $isDate = $date === null
        || is_string($date)
        && preg_match('/^(\d{4})-(\d\d)-(\d\d)$/D', $date, $part) === 1
        && checkdate((int) $part[2], (int) $part[3], (int) $part[1]);
    if (!$isText($title, 200) || !$isText($serialNumber, 64) || !$isDate) {
        $problem(422, 'A field is not as it must be');
    }
    if ($method === 'POST') {
        $number = $fields['number'] ?? null;
        if (!is_string($number) || preg_match('/^[A-Z0-9][A-Z0-9-]{0,15}$/D', $number) !== 1) {
            $problem(422, 'number is not as it must be');
        }
    }
}
if ($number === null) {
    $problem(405, "{$method} is not possible here");
}

// Emulated prepares need one round trip per request. A real prepared statement would need three, and would not outlive
// the request.
$database = new PDO((string) getenv('PLAIN_DSN'), options: [
    PDO::ATTR_PERSISTENT => true,
    PDO::ATTR_EMULATE_PREPARES => true,
    PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
    PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
]);

const ALL = 'number, title, serial_number, assembly_date, added_at';

$run = static function (string $sql, array $parameters) use ($database): PDOStatement {
    $statement = $database->prepare($sql);
    $statement->execute($parameters);

    return $statement;
};
$answer = static function (mixed $row, int $status) use ($problem): void {
    if (!is_array($row)) {
        $problem(404, 'There is no such aircraft');
    }
    /** @var array{added_at: string} $row */
    $row['added_at'] = (new DateTimeImmutable($row['added_at']))->format('Y-m-d\TH:i:s.uP');
    http_response_code($status);
    header('Content-Type: application/json');
    echo json_encode($row, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR);
};

switch ($method) {
    case 'POST':
        try {
            $row = $run(
                'INSERT INTO aircraft (number, title, serial_number, assembly_date) VALUES (?, ?, ?, ?) RETURNING '
                    . ALL,
                [$number, $title, $serialNumber, $date],
            )->fetch();
        } catch (PDOException $failure) {
            if ($failure->getCode() === '23505') {
                $problem(409, "There is an aircraft {$number} already");
            }
            throw $failure;
        }
        header("Location: /aircraft/{$number}");
        $answer($row, 201);
        break;
    case 'GET':
        $answer($run('SELECT ' . ALL . ' FROM aircraft WHERE number = ?', [$number])->fetch(), 200);
        break;
    case 'PUT':
        $answer(
            $run(
                'UPDATE aircraft SET title = ?, serial_number = ?, assembly_date = ? WHERE number = ? RETURNING ' . ALL,
                [$title, $serialNumber, $date, $number],
            )->fetch(),
            200,
        );
        break;
    case 'DELETE':
        if ($run('DELETE FROM aircraft WHERE number = ?', [$number])->rowCount() === 0) {
            $problem(404, 'There is no such aircraft');
        }
        http_response_code(204);
        break;
    default:
        $problem(405, "{$method} is not possible here");
}
