<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\Result;

/**
 * One connection to a server, by one driver. Methods are those of {@see PostgresLink}; each keeps its order among the others.
 *
 * It knows nothing of transactions but their status: who may send what while one is open is the affair of what holds the session.
 */
interface Session
{
    /** @param list<mixed> $parameters */
    public function query(string $sql, #[\SensitiveParameter] array $parameters = [], ?Cancellation $cancellation = null): Result;

    /**
     * The rows of a statement, in a transaction that is open.
     *
     * @param list<mixed> $parameters
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public function stream(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): \Generator;

    /** @param iterable<string|array<array-key, mixed>> $data */
    public function copyFrom(string $sql, #[\SensitiveParameter] iterable $data, ?Cancellation $cancellation): int;

    /** @return \Generator<int, string> */
    public function copyTo(string $sql, ?Cancellation $cancellation): \Generator;

    /** @param TransactionEnds|null $ends is told the commands that were done, also those before one that failed */
    public function script(string $sql, ?Cancellation $cancellation = null, ?TransactionEnds $ends = null): void;

    /** Whether several queries may be under way at once. */
    public function pipelines(): bool;

    /** Statements without an outcome yet, those that nobody waits for any more included. */
    public function inFlight(): int;

    /** Whether a query would be sent at once. */
    public function accepts(): bool;

    /**
     * Opens a transaction, with the next statement at the latest. Should that one be none that is sent, {@see hasBegun()} tells.
     *
     * @param string $sql BEGIN, with what it may have behind it
     */
    public function begin(string $sql, ?Cancellation $cancellation): void;

    /** Whether the server was told of a transaction that was begun; if not, it is forgotten. */
    public function hasBegun(): bool;

    /** Of the query that returned last, such as COMMIT. */
    public function commandTag(): string;

    /** Nanoseconds that the server took for the query that returned last; negative when nobody knows. */
    public function took(): int;

    /** Suspends until the server has answered, and nothing more. */
    public function ping(?Cancellation $cancellation = null): void;

    /** Whether something was sent that may have changed the session beyond its transaction. */
    public function isChanged(): bool;

    /** Something may have changed it that its statements don't tell. */
    public function noteChange(): void;

    /** Makes the session as it was at first: rolls back, and undoes what statements changed. */
    public function reset(): void;

    /** Suspends until nothing is in flight, a cancellation that was sent to the server included. */
    public function settle(?Cancellation $cancellation = null): void;

    /** Has the server stop what is in flight, for nobody wants it any more. */
    public function stop(): void;

    /** When something came from the server last: hrtime. */
    public function lastActivity(): int;

    /** Whether it can be used at all: neither closed nor lost. */
    public function isOpen(): bool;

    /** Whether the server refused to write, as one does that became a standby. */
    public function isReadOnly(): bool;

    /** As the server told it with the last answer: I for none, T for one that is open, E for one that can only be rolled back. */
    public function transactionStatus(): string;

    /** Of the server's process. */
    public function backendPid(): int;

    /** What the server tells by notifications; null for nobody. The session keeps the loop running while there is somebody. */
    public function onNotification(?\Closure $listener): void;

    /** Leaves to the network what the server sends, or reads on. */
    public function pause(bool $on): void;

    /** Called once, when the session is not open any more; with null when it was closed on purpose. */
    public function onClose(\Closure $callback): void;

    /** Ends it at once; whatever is in flight fails. */
    public function close(): void;
}
