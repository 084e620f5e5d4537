<?php

declare(strict_types=1);

namespace Spindle\Doctrine;

use Doctrine\DBAL\Driver\AbstractException;
use Spindle\Internal\CannotWaitException;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\TransactionAbortedException;

/** Wraps an exception of the PostgreSQL client. Doctrine chooses its own exception class by the SQLSTATE. */
final class Exception extends AbstractException
{
    /** The only SQLSTATE that Doctrine converts to its ConnectionException: connection_failure. */
    private const CONNECTION_FAILURE = '08006';

    /** SQLSTATE transaction_rollback, for a commit() that has rolled the transaction back. */
    public const ROLLED_BACK = '40000';

    /** Text in a message by which Doctrine recognizes a lost connection. */
    private const LOST = 'server closed the connection';

    private const ONE_BY_ONE = 'Execute each statement on its own';

    public static function of(PostgresException|CannotWaitException $failure): self
    {
        [$message, $state] = match (true) {
            $failure instanceof QueryException => [$failure->getMessage(), $failure->sqlState],
            // Does not pass on the SQLSTATE with which the server ended the session. A standby, for example, ends
            // sessions with 40001, for which Doctrine would report a deadlock.
            $failure instanceof ConnectionLostException,
            $failure instanceof ConnectionClosedException => [self::LOST . ": {$failure->getMessage()}", null],
            $failure instanceof AuthenticationException,
            $failure instanceof ConnectionFailedException,
            $failure instanceof PoolTimeoutException => [$failure->getMessage(), self::CONNECTION_FAILURE],
            $failure instanceof TransactionAbortedException => [
                'The transaction was rolled back instead of committed, because a statement in it had failed. If a '
                    . 'statement may fail, run it in a nested transactional()',
                self::ROLLED_BACK,
            ],
            $failure instanceof MultipleStatementsException => [
                "A prepared statement can't consist of several statements. A second one begins at: {$failure->second}. "
                    . self::ONE_BY_ONE,
                null,
            ],
            default => [$failure->getMessage(), null],
        };

        return new self($message, $state, previous: $failure);
    }

    /** @internal */
    public static function invalidParameter(\ValueError $failure): self
    {
        return new self(
            "A parameter of the Doctrine connection is invalid. {$failure->getMessage()}",
            previous: $failure,
        );
    }

    /** @internal */
    public static function fullPool(PoolTimeoutException $failure): self
    {
        return new self(
            "{$failure->getMessage()}. Close each Doctrine connection at the end of its request: \$connection->close()",
            self::CONNECTION_FAILURE,
            previous: $failure,
        );
    }

    /** @internal */
    public static function scriptEnded(): self
    {
        return new self(
            'The PHP script has ended, and its shutdown functions have run, so the connection was returned to its '
                . 'pool. '
                . 'Execute the statement earlier, for example in a function for register_shutdown_function()',
        );
    }

    /** @internal */
    public static function aborted(): self
    {
        return new self(
            'The transaction can only be rolled back, because an earlier COMMIT, ROLLBACK or statement about a '
                . 'savepoint could not be sent. Call rollBack() for the outermost transaction, or close the Doctrine '
                . 'connection',
        );
    }

    /** @internal The text does not advise rollBack(): Doctrine counts no transaction now, so the call would fail. */
    public static function endedByAnotherFiber(): self
    {
        return new self(
            'The transaction can only be rolled back, because another fiber has tried to end it. Begin another '
                . 'transaction, which rolls this one back first, or close the Doctrine connection',
        );
    }

    /** @internal The text does not advise rollBack(): Doctrine counts no transaction now, so the call would fail. */
    public static function ownerEnded(): self
    {
        return new self(
            'The transaction was rolled back instead of committed, because the fiber that began it has ended. Call '
                . 'commit() in the fiber that calls beginTransaction()',
            self::ROLLED_BACK,
        );
    }

    /** @internal The text does not advise rollBack(): Doctrine counts no transaction now, so the call would fail. */
    public static function rolledBack(): self
    {
        return new self(
            'The transaction was rolled back instead of committed, because an earlier COMMIT, ROLLBACK or statement '
                . 'about a savepoint could not be sent',
            self::ROLLED_BACK,
        );
    }

    /** @internal */
    public static function rowsOfScript(): self
    {
        return new self('The rows of several statements in one text are not available. ' . self::ONE_BY_ONE);
    }

    /** @internal */
    public static function unknownParameter(int|string $parameter): self
    {
        return new self(
            "The statement has no parameter {$parameter}. Parameters are written as ? or :name, not as \$1",
        );
    }

    /** @internal */
    public static function nulByte(): self
    {
        return new self("A text with a NUL byte can't be quoted, because PostgreSQL does not support it");
    }
}
