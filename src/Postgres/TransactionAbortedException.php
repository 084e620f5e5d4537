<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A statement had failed and its exception was caught, so the transaction was rolled back instead of committed. */
final class TransactionAbortedException extends \RuntimeException implements PostgresException
{
    private function __construct()
    {
        parent::__construct(
            'A statement of the transaction failed before, so it was rolled back rather than committed. Put what may fail in a nested transaction()',
        );
    }

    /** @internal */
    public static function atCommit(): self
    {
        return new self();
    }
}
