<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Amp\Cancellation;
use Amp\CancelledException;

/**
 * Executes statements. Pools, connections and transactions implement this interface.
 *
 * Parameters are a list of values: $1 in the statement stands for the first one. Values are sent separately from the
 * SQL. {@see Result} lists the PHP type for each PostgreSQL type. Each method suspends only the calling fiber. A call
 * outside of fibers runs the event loop until the method can return.
 *
 * A cancellation ends the call immediately with a CancelledException; {@see transaction()} has its own rules. The
 * server stops the statement soon after that, unless the statement has completed already. In the function of a
 * {@see transaction()}, do not catch the CancelledException, because this exception causes the rollback.
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
     * @throws \LogicException when the statement begins a transaction, and this is a {@see PostgresPool}
     * @throws CancelledException
     */
    public function query(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): Result;

    /**
     * Executes one statement and returns the number of rows that the statement wrote or returned.
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
     * Outside of a {@see Transaction}, the statement runs in its own transaction. This transaction is committed after
     * the last row, or when the loop over the rows ends early. After an early end, the commit runs in the background as
     * soon as the current fetch of rows is complete. If this fetch takes more than 5 s, the transaction is rolled back.
     * A warning reports this rollback or any other failure of the commit. close() waits for the commit.
     *
     * During the loop, a transaction or a pool accepts other statements. On a {@see PostgresConnection} or
     * {@see PooledConnection}, statements of other fibers wait for the end of the stream. A statement of the same fiber
     * throws a \LogicException.
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
     * Runs COPY … FROM STDIN. If the input throws or the call is cancelled, no row is copied.
     *
     * @param string $sql statement such as "COPY items (id, name) FROM STDIN"
     * @param iterable<string|array<array-key, mixed>> $data a string is sent unchanged: it must have the statement's
     *     format, with a line feed after each row. An array contains the values of one row, in the order of the
     *     columns; its keys are ignored. With arrays, the statement must use COPY's default format. For a
     *     file, pass new \SplFileObject($path)
     *
     * @return int number of copied rows
     */
    public function copyFrom(
        string $sql,
        #[\SensitiveParameter]
        iterable $data,
        ?Cancellation $cancellation = null,
    ): int;

    /**
     * Runs COPY … TO STDOUT, in constant memory. While a loop over the rows runs, no other statement can use the
     * connection.
     *
     * If the loop ends early, the COPY is cancelled. The cancellation aborts the transaction around the COPY, unless
     * the server has already sent all rows. An aborted transaction refuses further statements, and is rolled back.
     * Within a transaction, read all rows, limit them in the statement, or use {@see stream()}.
     *
     * @return \Generator<int, string> rows in the statement's format, each with its line end
     */
    public function copyTo(string $sql, ?Cancellation $cancellation = null): \Generator;

    /**
     * Executes any number of statements without parameters, such as a migration.
     *
     * The script runs as one transaction, unless it contains transaction commands or runs within a transaction.
     */
    public function executeScript(string $sql, ?Cancellation $cancellation = null): void;

    /**
     * Calls a function in a transaction. Commits when the function returns, and rolls back when it throws.
     *
     * A call within a transaction sets a savepoint instead, and rolls back to it when the function throws.
     *
     * The wait for the answer to COMMIT is limited only by the option readTimeout and by a cancellation. A warning is
     * logged after a minute of this wait. If the function has ended and the call is cancelled, the client waits at most
     * 5 s for the end of the transaction, and then closes the connection. A ROLLBACK always has a limit of 5 s.
     *
     * @template T
     *
     * @param \Closure(Transaction): T $work
     * @param Isolation|null $isolation null for the server's default; must be null within a transaction
     * @param int $retries maximum number of further calls of the function after a deadlock or a serialization failure
     *     (SQLSTATE 40P01, 40001); must be 0 within a transaction
     * @param Cancellation|null $cancellation ends the wait for a connection, for the BEGIN or for the next attempt.
     *     A cancellation before the function returns causes a rollback. A cancellation after the COMMIT was sent limits
     *     the wait for the answer to 5 s. The cancellation does not stop statements of the function
     *
     * @return T
     *
     * @throws CommitUnknownException when the connection is lost or closed during the commit, or the server does not
     *     answer the COMMIT within 5 seconds after a cancellation. The transaction may be committed or rolled back
     * @throws TransactionAbortedException when a statement has failed, and the function has caught the exception
     * @throws \LogicException when a statement such as BEGIN has already begun a transaction on the connection, or a
     *     statement of the function ends the transaction
     * @throws \Throwable exception of the function
     */
    public function transaction(
        \Closure $work,
        ?Isolation $isolation = null,
        int $retries = 0,
        ?Cancellation $cancellation = null,
    ): mixed;
}
