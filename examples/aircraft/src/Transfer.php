<?php

declare(strict_types=1);

namespace Aircraft;

use Amp\Cancellation;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\QueryException;

/** Aircraft by the million, as CSV: neither way is more in memory than what is under way. */
final readonly class Transfer
{
    private const COLUMNS = 'number, title, serial_number, assembly_date';

    public function __construct(private PostgresLink $database) {}

    /**
     * Adds all or none.
     *
     * @param iterable<string> $csv in pieces of any size, with the columns' names in the first line
     *
     * @return int how many were added
     *
     * @throws RefusedImportException
     */
    public function import(iterable $csv, ?Cancellation $cancellation = null): int
    {
        try {
            return $this->database->copyFrom('COPY aircraft (' . self::COLUMNS . ') FROM STDIN (FORMAT csv, HEADER match)', $csv, $cancellation);
        } catch (QueryException $refusal) {
            throw RefusedImportException::of($refusal) ?? $refusal;
        }
    }

    /** @return \Generator<string> CSV, as {@see import()} takes it */
    public function export(?Cancellation $cancellation = null): \Generator
    {
        return $this->database->copyTo('COPY (SELECT ' . self::COLUMNS . ' FROM aircraft ORDER BY number) TO STDOUT (FORMAT csv, HEADER)', $cancellation);
    }
}
