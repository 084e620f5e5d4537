<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\Result;

/**
 * One connection to a server, by one driver. Methods correspond to {@see PostgresLink}; calls run in their order. A
 * session only knows its transaction status. Its owner decides which fiber may send statements during a transaction.
 */
interface Session
{
    /** @param list<mixed> $parameters */
    public function query(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): Result;

    /**
     * Streams the rows of a statement, within an open transaction.
     *
     * @param list<mixed> $parameters
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): \Generator;

    /** @param iterable<string|array<array-key, mixed>> $data */
    public function copyFrom(string $sql, #[\SensitiveParameter] iterable $data, ?Cancellation $cancellation): int;

    /** @return \Generator<int, string> */
    public function copyTo(string $sql, ?Cancellation $cancellation): \Generator;

    /** @param TransactionEnds|null $ends records the commands that were done, also those before one that failed */
    public function script(string $sql, ?Cancellation $cancellation = null, ?TransactionEnds $ends = null): void;

    /** Whether several queries may be in flight at once. */
    public function supportsPipelining(): bool;

    /** Statements without an outcome, including abandoned ones. */
    public function inFlight(): int;

    /** Whether a query would be sent at once. */
    public function canSend(): bool;

    /**
     * Opens a transaction, together with the next statement at the latest. See {@see hasBegun()}.
     *
     * @param string $sql BEGIN with its options
     */
    public function begin(string $sql, ?Cancellation $cancellation): void;

    /** Whether the server received the last BEGIN; otherwise it is dropped. */
    public function hasBegun(): bool;

    /** Returns the tag of the query that returned last, such as COMMIT. */
    public function commandTag(): string;

    /** Nanoseconds that the server took for the query that returned last; negative when unknown. */
    public function took(): int;

    /** Suspends until the server has answered an empty request. */
    public function ping(?Cancellation $cancellation = null): void;

    /** Whether a statement may have changed the session beyond its transaction. */
    public function isChanged(): bool;

    /** Records that the session may have changed in a way that its statements do not show. */
    public function noteChange(): void;

    /** Restores the initial state: rolls back, and undoes changes of the session. */
    public function reset(): void;

    /** Suspends until nothing is in flight, including cancel requests. */
    public function settle(?Cancellation $cancellation = null): void;

    /** Asks the server to stop everything in flight, because its results are not needed. */
    public function stop(): void;

    /** When the last bytes from the server arrived, by hrtime(). */
    public function lastActivity(): int;

    /** Whether the session is usable: neither closed nor lost. */
    public function isOpen(): bool;

    /** Whether the server refused to write, like one that became a standby. */
    public function isReadOnly(): bool;

    /** Transaction status in the server's last answer: I for none, T for open, E for one that must be rolled back. */
    public function transactionStatus(): string;

    /** Returns the id of the server's process. */
    public function backendPid(): int;

    /** Sets the listener for notifications; null removes it. A listener keeps the event loop running. */
    public function onNotification(?\Closure $listener): void;

    /** Stops reading from the socket, or reads on. */
    public function pause(bool $on): void;

    /** Calls the callback once, when the session ends; with null when it was closed on purpose. */
    public function onClose(\Closure $callback): void;

    /** Ends the session at once; everything in flight fails. */
    public function close(): void;
}
