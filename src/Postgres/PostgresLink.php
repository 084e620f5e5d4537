<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Amp\Cancellation;
use Amp\CancelledException;

/**
 * What statements are sent through: a pool, a connection, a transaction.
 *
 * Parameters are a list, $1 is the first, and travel apart from the statement. {@see Result} tells what types of values there are. All
 * methods suspend the fiber that calls them, and work outside of fibers too.
 *
 * A cancellation ends the call at once with a CancelledException, and the statement on the server soon after; it may have been
 * done all the same. Within a transaction let the exception leave the function: then nothing of it stays.
 */
interface PostgresLink
{
    /**
     * One statement, and all of its rows.
     *
     * @param list<mixed> $parameters
     *
     * @throws QueryException              when the server refuses it
     * @throws MultipleStatementsException when there are several statements
     * @throws InvalidParameterException   when a value can't be sent as what the statement wants
     * @throws ConnectionLostException     when the connection is lost meanwhile
     * @throws CancelledException
     */
    public function query(string $sql, #[\SensitiveParameter] array $parameters = [], ?Cancellation $cancellation = null): Result;

    /**
     * The same, for the number of rows that the statement wrote, or read.
     *
     * @param list<mixed> $parameters
     */
    public function execute(string $sql, #[\SensitiveParameter] array $parameters = [], ?Cancellation $cancellation = null): int;

    /**
     * One statement, whose rows are fetched as they are taken, in constant memory. It runs in a transaction, which ends with the rows
     * or when the loop over them is left; another statement may be sent meanwhile.
     *
     * @param list<mixed> $parameters
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public function stream(string $sql, #[\SensitiveParameter] array $parameters = [], ?Cancellation $cancellation = null): \Generator;

    /**
     * COPY … FROM STDIN. Nothing is copied unless all is: not when the input throws, nor when it is cancelled.
     *
     * @param string                              $sql  such as "COPY items (id, name) FROM STDIN"
     * @param iterable<string|array<array-key, mixed>> $data strings are sent as they are, in the format that the statement names; arrays are
     *                                                  rows in the order of the columns, and need the format that COPY has by itself
     *
     * @return int rows
     */
    public function copyFrom(string $sql, #[\SensitiveParameter] iterable $data, ?Cancellation $cancellation = null): int;

    /**
     * COPY … TO STDOUT, in constant memory; nothing else may be sent until it is read or left.
     *
     * @return \Generator<int, string> a row each, in the format that the statement names, its line end included
     */
    public function copyTo(string $sql, ?Cancellation $cancellation = null): \Generator;

    /**
     * Any number of statements without parameters, such as a migration. Unless they say otherwise, and unless there is a transaction,
     * they are one transaction.
     */
    public function executeScript(string $sql, ?Cancellation $cancellation = null): void;

    /**
     * Calls it in a transaction: committed when it returns, rolled back when it throws. Within a transaction it is a savepoint.
     *
     * @template T
     *
     * @param \Closure(Transaction): T $work
     * @param Isolation|null           $isolation null for the server's default; not to be given within a transaction
     * @param int                      $retries   how often it is called again when the server ended the transaction for a deadlock or a
     *                                            serialization failure (SQLSTATE 40P01, 40001); not to be given within a transaction
     * @param Cancellation|null        $cancellation ends the wait for a connection, for a pause between tries and for the beginning, and has the
     *                                            transaction rolled back rather than committed; what the function waits for is to be given it
     *                                            by the function
     *
     * @return T
     *
     * @throws CommitUnknownException when the connection is lost, or closed, while the transaction is being committed
     * @throws \LogicException        when a statement began a transaction before, or ended this one
     * @throws \Throwable             what the function throws
     */
    public function transaction(\Closure $work, ?Isolation $isolation = null, int $retries = 0, ?Cancellation $cancellation = null): mixed;
}
