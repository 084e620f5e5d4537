<?php

declare(strict_types=1);

namespace Aircraft;

use Spindle\Postgres\CheckViolationException;
use Spindle\Postgres\NotNullViolationException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\UniqueViolationException;

/** A file is invalid. Nothing was added. */
final class InvalidImportException extends \DomainException
{
    /** PostgreSQL's error classes for data: malformed or of the wrong type, or violating a constraint. */
    private const OF_DATA = ['22', '23'];

    /** Rules for a line, by the constraint's name. */
    private const RULES = [
        'aircraft_number' => [
            'number',
            'must be 1 to 16 capital letters, digits and hyphens, and not begin with a hyphen',
        ],
        'aircraft_title' => [
            'title',
            'must be text without control characters, not only of spaces, of at most 200 characters',
        ],
        'aircraft_serial_number' => [
            'serial_number',
            'must be text without control characters, not only of spaces, of at most 64 characters',
        ],
        'aircraft_assembly_date' => ['assembly_date', 'must be a day of the years 1 to 9999'],
    ];

    /** @param array<string, string> $faults messages by field */
    private function __construct(
        string $message,
        public readonly ?int $lineOfFile = null,
        public readonly array $faults = [],
        public readonly bool $isDuplicate = false,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, previous: $previous);
    }

    /** Reports a line that PostgreSQL would read as the end of the file. */
    public static function endMark(int $line): self
    {
        return new self("Line {$line}: a line must not be \\. alone, the end of a COPY; nothing was added", $line);
    }

    /** @return self|null null when the file is not the cause */
    public static function of(QueryException $refusal): ?self
    {
        if (!\in_array(substr($refusal->sqlState, 0, 2), self::OF_DATA, true)) {
            return null;
        }
        // The format is "COPY aircraft, line 3, column title: …", in the server's language.
        $line = preg_match('/\d+/', (string) $refusal->context, $number) === 1 ? (int) $number[0] : null;
        [$field, $fault] = self::fault($refusal, $line);
        $where = $line === null ? '' : "Line {$line}: ";
        $what = $field === '' ? $fault : "{$field} {$fault}";

        return new self(
            "{$where}{$what}; nothing was added",
            $line,
            $field === '' ? [] : [$field => $fault],
            $refusal instanceof UniqueViolationException,
            $refusal,
        );
    }

    /** @return array{string, string} the field, '' for the whole line, and the message */
    private static function fault(QueryException $refusal, ?int $line): array
    {
        return match (true) {
            $refusal instanceof UniqueViolationException => [
                'number',
                'already exists, or is twice in the file' . self::value($refusal),
            ],
            $refusal instanceof CheckViolationException => self::RULES[$refusal->constraint]
                ?? ['', "violates the rule {$refusal->constraint}"],
            $refusal instanceof NotNullViolationException => [(string) $refusal->column, 'is missing'],
            \in_array(
                $refusal->sqlState,
                ['22007', '22008', '22009'],
                true,
            ) => ['assembly_date', 'must be a date such as 1998-04-30, or empty'],
            \in_array($refusal->sqlState, ['22021', '22P05'], true) => ['', 'the text is not in UTF-8'],
            $refusal->routine === 'CopyReadAttributesCSV' => ['', 'a quote is opened and not closed'],
            $refusal->routine === 'CopyReadLineText' => [
                '',
                'a line ends differently from the lines before, or within a field that is not in quotes',
            ],
            $line === 1 => ['', 'the names of the columns must be number,title,serial_number,assembly_date'],
            default => ['', 'there must be four fields: number,title,serial_number,assembly_date'],
        };
    }

    /** Extracts the value from "Key (number)=(D-AIMA) already exists.", in the server's language. */
    private static function value(QueryException $refusal): string
    {
        return preg_match('/=\(([A-Z0-9-]+)\)/', (string) $refusal->detail, $number) === 1 ? ": {$number[1]}" : '';
    }
}
