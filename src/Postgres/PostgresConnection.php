<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Spindle\Internal\NotCopyable;
use Spindle\Internal\SelfWaitException;
use Spindle\Lifecycle;
use Spindle\Postgres\Internal\ConnectionSession;
use Spindle\Postgres\Internal\Listening;
use Spindle\Postgres\Internal\SendsStatements;
use Spindle\Postgres\Internal\SessionFactory;
use Spindle\Postgres\Internal\TransactionRun;

/**
 * One connection to a PostgreSQL server.
 *
 * Concurrent statements of several fibers run in the order in which they were sent, and share round trips. While a
 * transaction, a stream or a COPY is open, statements of other fibers wait for its end.
 *
 * The connection is closed when nothing references this object. This class does not replace a lost connection, but a
 * {@see PostgresPool} replaces it.
 */
final class PostgresConnection implements Lifecycle, PostgresLink
{
    use NotCopyable;
    use SendsStatements;

    /** Ends the generators of {@see listen()}. */
    private readonly DeferredCancellation $listeningEnd;

    private function __construct(
        private readonly ConnectionSession $connectionSession,
        private readonly PostgresOptions $options,
    ) {
        $this->listeningEnd = new DeferredCancellation();
    }

    public function __destruct()
    {
        if ($this->connectionSession->belongsToThisProcess()) {
            $this->connectionSession->refuseCalls();
        }
    }

    /**
     * Connects to a server. Suspends until the connection is ready.
     *
     * @param string|PostgresOptions $options a DSN for {@see PostgresOptions::fromDsn()}, or options
     *
     * @throws ConnectionFailedException when no host accepts the connection
     * @throws AuthenticationException when the server refuses the login, does not prove its identity, or requests an
     *     authentication method that is not allowed
     * @throws CancelledException
     */
    public static function connect(
        #[\SensitiveParameter]
        string|PostgresOptions $options = '',
        ?Cancellation $cancellation = null,
    ): self {
        $options = \is_string($options) ? PostgresOptions::fromDsn($options) : $options;

        $session = (new SessionFactory($options))->open($cancellation);
        $logger = $options->logger;
        $warn = $logger === null ? null : static fn(string $warning) => $logger->warning($warning);

        return new self(new ConnectionSession($session, warn: $warn), $options);
    }

    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): \Generator {
        yield from TransactionRun::stream($this->connectionSession, $sql, $parameters, $cancellation);
    }

    /**
     * Listens for notifications on channels, over a separate connection.
     *
     * The separate connection is opened when the loop over the generator starts. If that connection is lost, another
     * connection is opened as soon as a server is available. Then the generator yields a {@see Reconnected},
     * because notifications may be missing.
     *
     * @param string|list<string> $channels
     *
     * @return \Generator<int, Notification|Reconnected> ends at the cancellation, {@see close()} or {@see kill()};
     *     ending the loop closes the separate connection
     *
     * @throws ConnectionFailedException when no server accepts the first connection
     * @throws AuthenticationException when a server refuses the login of the first or a later connection
     * @throws ConnectionClosedException when this connection was closed, or is killed during the loop
     */
    public function listen(string|array $channels, ?Cancellation $cancellation = null): \Generator
    {
        if ($this->listeningEnd->isCancelled()) {
            throw ConnectionClosedException::connection();
        }

        return Listening::to(new SessionFactory($this->options), (array) $channels, $cancellation, $this->listeningEnd);
    }

    /** Returns the id of the server's process, as shown in pg_stat_activity. */
    public function backendPid(): int
    {
        return $this->connectionSession->session->backendPid();
    }

    /** Returns whether the connection accepts no calls, because it was closed, killed or lost. */
    public function isClosed(): bool
    {
        return $this->connectionSession->isClosed();
    }

    /**
     * Refuses new calls, waits until all accepted calls have ended, and closes the connection.
     *
     * Accepted calls are statements, transactions, streams and COPYs that run or wait. A transaction may still run its
     * statements, nested transactions and retries. A stream ends when its rows are read or its generator is destroyed.
     * Generators of {@see listen()} yield the notifications that have arrived, and end.
     *
     * Cancellation: ends the remaining calls as {@see kill()} does.
     *
     * @throws CancelledException
     * @throws \LogicException when close() would wait for its own fiber: this fiber has a transaction, a stream or a
     *     COPY on the connection, or the __toString() of a statement's parameter calls close(). The connection remains
     *     unchanged
     */
    public function close(?Cancellation $cancellation = null): void
    {
        if ($this->connectionSession->isUsedByCurrentFiber()) {
            throw SelfWaitException::ofClose(
                'This fiber has a transaction, a statement, a stream or a COPY on the connection',
                'End it first',
            );
        }
        $this->listeningEnd->cancel();
        $this->connectionSession->close($cancellation);
    }

    /**
     * Closes the connection immediately. Accepted calls and generators of {@see listen()} fail with
     * {@see ConnectionClosedException}, and the server rolls back an open transaction. The client asks the server to
     * stop statements in progress. This method does not wait until the server has received this request. But the event
     * loop does not end before the server has received it.
     */
    public function kill(): void
    {
        $this->listeningEnd->cancel(ConnectionClosedException::connection());
        $this->connectionSession->kill();
    }

    private function connectionSession(): ConnectionSession
    {
        return $this->connectionSession;
    }
}
