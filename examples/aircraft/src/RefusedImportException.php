<?php

declare(strict_types=1);

namespace Aircraft;

use Spindle\Postgres\QueryException;
use Spindle\Postgres\UniqueViolationException;

/** A file is not what it should be; nothing of it was added. */
final class RefusedImportException extends \DomainException
{
    /** What PostgreSQL says of data: malformed, of the wrong type, against a constraint. */
    private const OF_DATA = ['22', '23'];

    private function __construct(string $message, public readonly bool $isDuplicate, \Throwable $previous)
    {
        parent::__construct($message, previous: $previous);
    }

    /** @return self|null null where it is not the file that is wrong */
    public static function of(QueryException $refusal): ?self
    {
        if (!\in_array(substr($refusal->sqlState, 0, 2), self::OF_DATA, true)) {
            return null;
        }
        $where = preg_match('/\bline \d+/', (string) $refusal->context, $line) === 1 ? " ({$line[0]})" : '';
        $detail = (string) $refusal->detail;

        return new self($refusal->getMessage() . ($detail === '' ? '' : ": {$detail}") . $where, $refusal instanceof UniqueViolationException, $refusal);
    }
}
