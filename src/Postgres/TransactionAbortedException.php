<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The transaction was rolled back instead of committed, because a statement failed and its exception was caught. */
final class TransactionAbortedException extends \RuntimeException implements PostgresException
{
    private function __construct()
    {
        parent::__construct(
            'The transaction was rolled back instead of committed, because a statement in it had failed. '
                . 'If a statement may fail, run it in a nested transaction()',
        );
    }

    /** @internal */
    public static function atCommit(): self
    {
        return new self();
    }
}
