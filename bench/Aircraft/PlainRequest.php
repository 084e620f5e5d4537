<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

/**
 * A checked request to one of the peers that are written by hand, plain.php and swoole.php. Status codes, JSON and
 * checks equal those of the application.
 *
 * The peers load this file without an autoloader. It depends on no other file.
 */
final class PlainRequest
{
    private const NUMBER = '[A-Z0-9][A-Z0-9-]{0,15}';
    private const COLUMNS = 'number, title, serial_number, assembly_date, added_at';
    private const MAX_TITLE_CHARACTERS = 200;
    private const MAX_SERIAL_NUMBER_CHARACTERS = 64;
    private const UNIQUE_VIOLATION = '23505';

    private function __construct(
        private readonly string $method,
        private readonly string $number,
        private readonly string $title = '',
        private readonly string $serialNumber = '',
        private readonly ?string $assemblyDate = null,
    ) {}

    /**
     * @param string             $path without a query
     * @param \Closure(): string $body reads the body, if the method has one
     *
     * @return self|array{int, array<string, string>, string} the request, or the answer that refuses it
     */
    public static function read(string $method, string $path, string $contentType, \Closure $body): self|array
    {
        if (preg_match('~^/aircraft(?:/(' . self::NUMBER . '))?$~D', $path, $match) !== 1) {
            return self::problem(404, 'There is nothing here');
        }
        $number = $match[1] ?? null;
        if ($method !== 'POST' && $method !== 'PUT') {
            return $number === null ? self::notPossible($method) : new self($method, $number);
        }
        if (!str_starts_with($contentType, 'application/json')) {
            return self::problem(415, 'The body must be JSON');
        }
        $fields = json_decode($body(), true, 8);
        if (!\is_array($fields)) {
            return self::problem(400, 'The body must be a JSON object');
        }
        $number = $method === 'POST' ? $fields['number'] ?? '' : $number;
        if ($number === null) {
            return self::notPossible($method);
        }
        [$title, $serialNumber] = [$fields['title'] ?? null, $fields['serial_number'] ?? null];
        $date = $fields['assembly_date'] ?? null;
        $isValid = \is_string($number) && preg_match('/^' . self::NUMBER . '$/D', $number) === 1
            && self::isText($title, self::MAX_TITLE_CHARACTERS)
            && self::isText($serialNumber, self::MAX_SERIAL_NUMBER_CHARACTERS)
            && self::isDate($date);

        return $isValid
            ? new self($method, $number, $title, $serialNumber, $date)
            : self::problem(422, 'A field is not valid');
    }

    /** @return array{int, array<string, string>, string} status, header fields and body of the answer */
    public function run(\PDO $database): array
    {
        $fields = [$this->title, $this->serialNumber, $this->assemblyDate];
        try {
            return match ($this->method) {
                'POST' => $this->row(201, self::execute(
                    $database,
                    'INSERT INTO aircraft (title, serial_number, assembly_date, number) VALUES (?, ?, ?, ?)'
                        . ' RETURNING ' . self::COLUMNS,
                    [...$fields, $this->number],
                )),
                'GET' => $this->row(200, self::execute(
                    $database,
                    'SELECT ' . self::COLUMNS . ' FROM aircraft WHERE number = ?',
                    [$this->number],
                )),
                'PUT' => $this->row(200, self::execute(
                    $database,
                    'UPDATE aircraft SET title = ?, serial_number = ?, assembly_date = ? WHERE number = ?'
                        . ' RETURNING ' . self::COLUMNS,
                    [...$fields, $this->number],
                )),
                'DELETE' => self::execute(
                    $database,
                    'DELETE FROM aircraft WHERE number = ?',
                    [$this->number],
                )->rowCount() === 0 ? self::missing() : [204, [], ''],
                default => self::notPossible($this->method),
            };
        } catch (\PDOException $failure) {
            return $failure->getCode() === self::UNIQUE_VIOLATION
                ? self::problem(409, "There is an aircraft {$this->number} already")
                : throw $failure;
        }
    }

    /** @phpstan-assert-if-true string $text */
    private static function isText(mixed $text, int $maxCharacters): bool
    {
        return \is_string($text)
            && preg_match('/^[^\p{C}]*$/Du', $text) === 1
            && trim($text) !== ''
            && mb_strlen($text) <= $maxCharacters;
    }

    /** @phpstan-assert-if-true string|null $date */
    private static function isDate(mixed $date): bool
    {
        return $date === null
            || \is_string($date)
            && preg_match('/^(\d{4})-(\d\d)-(\d\d)$/D', $date, $part) === 1
            && checkdate((int) $part[2], (int) $part[3], (int) $part[1]);
    }

    /** @param list<string|null> $parameters */
    private static function execute(\PDO $database, string $sql, array $parameters): \PDOStatement
    {
        $statement = $database->prepare($sql);
        $statement->execute($parameters);

        return $statement;
    }

    /** @return array{int, array<string, string>, string} */
    private function row(int $status, \PDOStatement $statement): array
    {
        $row = $statement->fetch(\PDO::FETCH_ASSOC);
        if (!\is_array($row)) {
            return self::missing();
        }
        /** @var array{added_at: string} $row */
        $row['added_at'] = (new \DateTimeImmutable($row['added_at']))->format('Y-m-d\TH:i:s.uP');

        return [
            $status,
            ['Content-Type' => 'application/json']
            + ($status === 201 ? ['Location' => "/aircraft/{$this->number}"] : []),
            json_encode($row, \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_THROW_ON_ERROR),
        ];
    }

    /** @return array{int, array<string, string>, string} */
    private static function missing(): array
    {
        return self::problem(404, 'There is no such aircraft');
    }

    /** @return array{int, array<string, string>, string} */
    private static function notPossible(string $method): array
    {
        return self::problem(405, "{$method} is not possible here");
    }

    /** @return array{int, array<string, string>, string} */
    private static function problem(int $status, string $detail): array
    {
        return [
            $status,
            ['Content-Type' => 'application/problem+json'],
            json_encode(['status' => $status, 'detail' => $detail], \JSON_THROW_ON_ERROR),
        ];
    }
}
