<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\Result;

/**
 * One session of a server, through one driver. The methods for statements do the same as those of {@see PostgresLink}.
 * The server executes statements in the order of the calls. A session does not reserve itself for a transaction: its
 * owner decides which fibers may use it.
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

    /** @param TransactionEndDetector|null $endDetector gets the tag of each command that completes */
    public function script(
        string $sql,
        ?Cancellation $cancellation = null,
        ?TransactionEndDetector $endDetector = null,
    ): void;

    /** Whether several queries may be in flight at once. */
    public function supportsPipelining(): bool;

    /** Returns the number of statements in flight, also abandoned ones. With ext-pgsql, waiting ones count as well. */
    public function inFlight(): int;

    /** Whether the session would send a read immediately: neither a COPY nor a cancel request delays it. */
    public function canSend(): bool;

    /** Begins a transaction: sends `$sql`, which is BEGIN with its options, immediately or with the next statement. */
    public function begin(string $sql, ?Cancellation $cancellation): void;

    /** Discards a BEGIN that was not sent yet. Returns whether there was one. */
    public function discardUnsentBegin(): bool;

    /** Returns the command tag of the query that returned last, such as COMMIT. */
    public function commandTag(): string;

    /** Returns how long the server took for the query that returned last, in nanoseconds; negative when unknown. */
    public function lastQueryNanoseconds(): int;

    /** Suspends until the server has answered an empty request. */
    public function ping(?Cancellation $cancellation = null): void;

    /** Whether a statement may have changed the session beyond its transaction. */
    public function isChanged(): bool;

    /** Records that the session may have been changed in a way that the text of its statements does not show. */
    public function noteChange(): void;

    /** Rolls back an open transaction, and undoes changes of the session. */
    public function reset(): void;

    /** Suspends until no statement and no cancel request is in flight. */
    public function settle(?Cancellation $cancellation = null): void;

    /** Asks the server to cancel all statements in flight. Their results are discarded. */
    public function stop(): void;

    /** Returns when bytes were last received, or the session was opened, by hrtime(). */
    public function lastReceived(): int;

    /** Whether the session is usable: neither closed nor lost. */
    public function isOpen(): bool;

    /** Whether the server has refused a write because it is read-only, for example after it became a standby. */
    public function isReadOnly(): bool;

    /** Returns the transaction status in the last answer: I (no transaction), T (open), or E (must be rolled back). */
    public function transactionStatus(): string;

    /** Returns the id of the server's process. */
    public function backendPid(): int;

    /** Sets the listener for notifications; null removes it. A listener keeps the event loop running. */
    public function onNotification(?\Closure $listener): void;

    /** Pauses reading from the socket, or resumes it. */
    public function pause(bool $on): void;

    /** Adds a callback for the end of the session. The callback gets the reason, or null after {@see close()}. */
    public function onClose(\Closure $callback): void;

    /** Closes the session immediately. All statements in flight fail, by default as those of a closed connection. */
    public function close(?ConnectionClosedException $reason = null): void;
}
