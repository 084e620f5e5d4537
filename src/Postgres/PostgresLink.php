<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Amp\Cancellation;
use Amp\CancelledException;

/**
 * A pool, a connection or a transaction, through which statements are sent.
 *
 * Parameters are a list, in which $1 is the first value. They are sent separately from the statement. {@see Result}
 * lists the types of values. Each method suspends only the calling fiber, and also works outside of fibers.
 *
 * A cancellation ends the call at once with a CancelledException, and the statement on the server soon after. The
 * statement may have completed nevertheless. Within a transaction, let the exception leave the function to roll back.
 */
interface PostgresLink
{
    /**
     * Executes one statement and returns all of its rows.
     *
     * @param list<mixed> $parameters
     *
     * @throws QueryException when the server refuses the statement
     * @throws MultipleStatementsException when there are several statements
     * @throws InvalidParameterException when a value can't be sent as the type that the statement expects
     * @throws ConnectionLostException when the connection is lost during the call
     * @throws CancelledException
     */
    public function query(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): Result;

    /**
     * Executes one statement and returns the number of rows that it wrote or returned.
     *
     * @param list<mixed> $parameters
     */
    public function execute(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): int;

    /**
     * Executes one statement and yields its rows while they arrive, in constant memory.
     *
     * Outside of a {@see Transaction}, the statement runs in its own transaction. That ends after the last row or when
     * the loop is left. The loop may send other statements.
     *
     * @param list<mixed> $parameters
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): \Generator;

    /**
     * Runs COPY … FROM STDIN. Copies all rows, or none when the input throws or the call is cancelled.
     *
     * @param string $sql statement such as "COPY items (id, name) FROM STDIN"
     * @param iterable<string|array<array-key, mixed>> $data strings are sent unchanged, in the statement's format;
     *     arrays are rows in the order of the columns, and need COPY's default format
     *
     * @return int number of rows
     */
    public function copyFrom(
        string $sql,
        #[\SensitiveParameter]
        iterable $data,
        ?Cancellation $cancellation = null,
    ): int;

    /**
     * Runs COPY … TO STDOUT, in constant memory. Nothing else may be sent until the data are read or the loop is left.
     *
     * @return \Generator<int, string> rows in the statement's format, each with its line end
     */
    public function copyTo(string $sql, ?Cancellation $cancellation = null): \Generator;

    /**
     * Executes any number of statements without parameters, such as a migration.
     *
     * The statements are one transaction, unless they contain transaction commands or run within a transaction.
     */
    public function executeScript(string $sql, ?Cancellation $cancellation = null): void;

    /**
     * Calls a function in a transaction: commits when it returns, rolls back when it throws. Within a transaction, it
     * sets a savepoint.
     *
     * The COMMIT waits for the server without a limit, and logs a warning after a minute. The option readTimeout limits
     * the wait. A cancellation does so too: 5 seconds after it, the connection is closed.
     *
     * @template T
     *
     * @param \Closure(Transaction): T $work
     * @param Isolation|null $isolation null for the server's default; must be null within a transaction
     * @param int $retries how often to call the function again after a deadlock or a serialization failure (SQLSTATE
     *     40P01, 40001); must be 0 within a transaction
     * @param Cancellation|null $cancellation ends a wait for a connection, for the next retry or for the BEGIN. Later,
     *     it makes the transaction roll back instead of committing, or limits the wait for a COMMIT that was sent.
     *     Calls within the function do not get it
     *
     * @return T
     *
     * @throws CommitUnknownException when the connection is lost or closed during the commit, or the server does not
     *     answer the COMMIT within 5 seconds after a cancellation. All of the transaction is done, or none
     * @throws \LogicException when a statement had already begun a transaction, or a statement ended this one
     * @throws \Throwable exception of the function
     */
    public function transaction(
        \Closure $work,
        ?Isolation $isolation = null,
        int $retries = 0,
        ?Cancellation $cancellation = null,
    ): mixed;
}
