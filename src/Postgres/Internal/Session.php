<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\Result;

/**
 * Operations that a borrower can perform on a session. The methods for statements do the same as in
 * {@see PostgresLink}. The server executes statements in the order in which they are sent. A session accepts calls of
 * any fiber, even during a transaction. The {@see SessionLender} decides which fibers may use the session.
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

    /** Returns the number of statements in flight, including those whose callers no longer wait. */
    public function inFlight(): int;

    /** Begins a transaction. `$sql` is BEGIN with options. BEGIN is sent immediately or with the next statement. */
    public function begin(string $sql, ?Cancellation $cancellation): void;

    /** Discards a BEGIN that was not sent yet. Returns whether there was an unsent BEGIN. */
    public function discardUnsentBegin(): bool;

    /** Returns the command tag of the last completed query, such as COMMIT. */
    public function commandTag(): string;

    /** Suspends until no statement and no cancel request is in flight. */
    public function settle(?Cancellation $cancellation = null): void;

    /** Asks the server to cancel all statements in flight. Their results are discarded. */
    public function stop(): void;

    public function isOpen(): bool;

    /** Returns the transaction status in the last answer: I (no transaction), T (open), or E (must be rolled back). */
    public function transactionStatus(): string;

    public function backendPid(): int;

    /** Closes the session immediately. All statements in flight fail with `$reason`, or with a default exception. */
    public function close(?ConnectionClosedException $reason = null): void;

    /** Makes the fibers that wait for a mutex fail when the session ends, or now if it has ended. */
    public function endWaitsFor(FairMutex $mutex): void;
}
