<?php

declare(strict_types=1);

namespace Aircraft;

use Amp\Cancellation;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\QueryException;

/** Imports and exports millions of aircraft as CSV. Only the current piece is in memory. */
final readonly class Transfer
{
    private const COLUMNS = 'number, title, serial_number, assembly_date';

    /**
     * Columns of an export. An apostrophe before =, +, @ or - keeps spreadsheets from running the value as a formula.
     */
    private const EXPORTED = "number, CASE WHEN title ~ '^[=+@-]' THEN '''' || title ELSE title END AS title, "
        . "CASE WHEN serial_number ~ '^[=+@-]' THEN '''' || serial_number ELSE serial_number END AS serial_number, "
        . 'assembly_date';

    /** Size of a piece in bytes. An export would take twice as long row by row. */
    private const PIECE_BYTES = 65_536;

    private const BYTE_ORDER_MARK = "\u{feff}";

    public function __construct(private PostgresLink $database) {}

    /**
     * Adds all aircraft or none.
     *
     * @param iterable<string> $csv pieces of any size, with the columns' names in the first line
     *
     * @return int number of added aircraft
     *
     * @throws InvalidImportException
     */
    public function import(iterable $csv, ?Cancellation $cancellation = null): int
    {
        try {
            return $this->database->copyFrom(
                'COPY aircraft (' . self::COLUMNS . ') FROM STDIN (FORMAT csv, HEADER match)',
                self::checked($csv),
                $cancellation,
            );
        } catch (QueryException $refusal) {
            throw InvalidImportException::of($refusal) ?? $refusal;
        }
    }

    /** @return \Generator<int, string> CSV for {@see import()}, in pieces of many rows */
    public function export(?Cancellation $cancellation = null): \Generator
    {
        $piece = '';
        foreach ($this->database->copyTo(
            'COPY (SELECT ' . self::EXPORTED . ' FROM aircraft ORDER BY number) TO STDOUT (FORMAT csv, HEADER)',
            $cancellation,
        ) as $row) {
            $piece .= $row;
            if (\strlen($piece) >= self::PIECE_BYTES) {
                yield $piece;
                $piece = '';
            }
        }
        yield $piece;
    }

    /**
     * Yields the file without a byte order mark.
     *
     * Refuses a line that is "\.": before PostgreSQL 18, it ends a COPY even of CSV, and the rest is silently ignored.
     *
     * @param iterable<string> $csv
     *
     * @return \Generator<int, string>
     */
    private static function checked(iterable $csv): \Generator
    {
        $begin = '';
        $end = null; // the last bytes of earlier pieces, which may hold the beginning of such a line
        $lines = 1;
        foreach ($csv as $piece) {
            if ($end === null) {
                $begin .= $piece;
                if (\strlen($begin) < \strlen(self::BYTE_ORDER_MARK)) {
                    continue;
                }
                [$piece, $end] = [
                    str_starts_with($begin, self::BYTE_ORDER_MARK)
                        ? substr($begin, \strlen(self::BYTE_ORDER_MARK))
                        : $begin,
                    "\n",
                ];
            }
            if (preg_match('/[\r\n]\\\\\.[\r\n]/', $end . $piece, $mark, \PREG_OFFSET_CAPTURE) === 1) {
                throw InvalidImportException::endMark(
                    $lines + substr_count(substr($piece, 0, max(0, $mark[0][1] + 1 - \strlen($end))), "\n"),
                );
            }
            $end = substr($end . $piece, -3);
            $lines += substr_count($piece, "\n");
            yield $piece;
        }
        if ($end === null) {
            yield $begin;
        } elseif (preg_match('/[\r\n]\\\\\.$/D', $end) === 1) {
            throw InvalidImportException::endMark($lines);
        }
    }
}
