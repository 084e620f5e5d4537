<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Revolt\EventLoop\Driver;
use Spindle\Internal\NotCopyable;
use Spindle\Lifecycle;
use Spindle\Postgres\Internal\Listening;
use Spindle\Postgres\Internal\Pool\PoolCounters;
use Spindle\Postgres\Internal\Pool\QueryRunner;
use Spindle\Postgres\Internal\Pool\SessionPool;
use Spindle\Postgres\Internal\SessionFactory;
use Spindle\Postgres\Internal\SharedListening;
use Spindle\Postgres\Internal\TransactionRun;
use Spindle\Statistics;

/**
 * A pool of connections to a PostgreSQL server, opened on demand and reused.
 *
 * Concurrent reads share connections and round trips if earlier executions of the same statements were short. Each
 * other statement gets a connection exclusively, and so does each transaction, stream, COPY and script.
 *
 * If a fiber already holds a connection of the pool, its further statements also get connections exclusively. On a
 * shared connection, a deadlock would be possible. The further statement would wait for earlier statements of other
 * fibers. One of these could wait for a lock that the fiber's open transaction holds.
 *
 * Waiting fibers get connections in the order of their calls, with one exception: a statement that can share a
 * connection can overtake a call that needs an exclusive connection. Therefore, the pool reserves one shared connection
 * for each call that waits for an exclusive connection, unless all shared connections are reserved already. No further
 * statement is sent on a reserved connection, so the connection becomes free.
 *
 * Two statements that are sent through the pool can run on different connections. To use the same connection for
 * several statements, call {@see transaction()}, or borrow a connection with {@see acquire()}. When a borrowed
 * connection is released, changes to its session are undone.
 *
 * The first connection is opened on first use. When a connection is lost, its running statements fail. The pool opens
 * another connection when it needs one. So the pool recovers from a restart of the server. When nothing references the
 * pool, the pool closes each connection as soon as no running or waiting call needs the connection.
 */
final class PostgresPool implements Lifecycle, PostgresLink, Statistics
{
    use NotCopyable;

    private readonly PostgresOptions $options;

    private readonly PostgresPoolOptions $poolOptions;

    /** Event loop of {@see $sessions}. {@see query()} compares it with the current one, by a single call. */
    private Driver $loop;

    private SessionPool $sessions;

    private QueryRunner $queryRunner;

    /** Ends the generators of {@see listen()} and {@see listenShared()}. */
    private readonly DeferredCancellation $listeningEnd;

    private ?SharedListening $sharedListening = null;

    /** @var \Closure(string): mixed */
    private readonly \Closure $warn;

    /**
     * @param string|PostgresOptions $options a DSN for {@see PostgresOptions::fromDsn()}, or options
     * @param int $maxConnections maximum number of connections, at least 1
     *
     * @throws \ValueError when the DSN is invalid, or a number is out of its range
     */
    public function __construct(
        #[\SensitiveParameter]
        string|PostgresOptions $options = '',
        private readonly int $maxConnections = 10,
        ?PostgresPoolOptions $poolOptions = null,
    ) {
        $this->options = \is_string($options) ? PostgresOptions::fromDsn($options) : $options;
        $this->poolOptions = $poolOptions ?? new PostgresPoolOptions();
        if ($maxConnections < 1 || $maxConnections < $this->poolOptions->minConnections) {
            throw new \ValueError(
                "The option maxConnections must be at least 1 and at least minConnections, not {$maxConnections}",
            );
        }
        $logger = $this->options->logger;
        $this->warn = $this->poolOptions->onWarning ?? static function (string $warning) use ($logger): void {
            $logger === null ? error_log("Spindle: {$warning}") : $logger->warning($warning);
        };
        $this->useCurrentLoop(new PoolCounters());
        $this->listeningEnd = new DeferredCancellation();
    }

    public function __destruct()
    {
        if (isset($this->sessions) && $this->sessions->belongsToThisProcess()) {
            $this->sessions->refuseCalls();
        }
    }

    public function query(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): Result {
        if (EventLoop::getDriver() !== $this->loop) {
            $this->pool();
        }

        return $this->queryRunner->run($sql, $parameters, $cancellation);
    }

    public function execute(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): int {
        return $this->query($sql, $parameters, $cancellation)->affectedRows;
    }

    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): \Generator {
        QueryRunner::refuseTransaction($sql);
        yield from TransactionRun::stream($this->pool(), $sql, $parameters, $cancellation);
    }

    public function copyFrom(
        string $sql,
        #[\SensitiveParameter]
        iterable $data,
        ?Cancellation $cancellation = null,
    ): int {
        $pool = $this->pool();
        $session = $pool->acquire($cancellation);
        try {
            return $session->copyFrom($sql, $data, $cancellation);
        } finally {
            $pool->release($session);
        }
    }

    public function copyTo(string $sql, ?Cancellation $cancellation = null): \Generator
    {
        $pool = $this->pool();
        $session = $pool->acquire($cancellation);
        try {
            yield from $session->copyTo($sql, $cancellation);
        } finally {
            $pool->release($session);
        }
    }

    public function executeScript(string $sql, ?Cancellation $cancellation = null): void
    {
        $pool = $this->pool();
        $session = $pool->acquire($cancellation);
        try {
            $session->script($sql, $cancellation);
        } finally {
            $pool->release($session);
        }
    }

    public function transaction(
        \Closure $work,
        ?Isolation $isolation = null,
        int $retries = 0,
        ?Cancellation $cancellation = null,
    ): mixed {
        return TransactionRun::run($this->pool(), $work, $isolation, $retries, $cancellation);
    }

    /**
     * Borrows a connection for work that depends on session state: settings, temporary tables or advisory locks.
     *
     * Call {@see PooledConnection::release()} to return the connection. If nothing references the returned object any
     * more, the pool takes the connection back and logs a warning.
     *
     * @throws PoolTimeoutException when no connection is free within the acquireTimeout, or too many fibers wait
     * @throws ConnectionFailedException when no connection is open, and the attempt to open one fails. After a
     *     temporary failure, a pool that has reached a server retries instead
     * @throws AuthenticationException when no connection is open and the login fails
     */
    public function acquire(?Cancellation $cancellation = null): PooledConnection
    {
        $pool = $this->pool();
        $session = $pool->borrow($cancellation);

        return new PooledConnection($pool, $session, $this->poolOptions->leakDetectionThreshold, $this->warn);
    }

    /**
     * Listens for notifications like {@see PostgresConnection::listen()}, over a separate connection outside the pool.
     * maxConnections and the statistics do not include this connection.
     *
     * @param string|list<string> $channels
     *
     * @return \Generator<int, Notification|Reconnected> ends at the cancellation, {@see close()} or {@see kill()};
     *     ending the loop closes the separate connection
     *
     * @throws ConnectionFailedException when no server accepts the first connection
     * @throws AuthenticationException when a server refuses the login of the first or a later connection
     */
    public function listen(string|array $channels, ?Cancellation $cancellation = null): \Generator
    {
        if ($this->listeningEnd->isCancelled()) {
            throw ConnectionClosedException::pool();
        }

        return Listening::to(new SessionFactory($this->options), (array) $channels, $cancellation, $this->listeningEnd);
    }

    /**
     * Listens for notifications over one connection outside the pool. All generators of this method share it.
     *
     * While a loop is busy, at most about a thousand notifications wait for it. Further ones are dropped, and the loop
     * gets a {@see NotificationsDropped} in their place. Other loops are not affected. After a loss of the connection,
     * each loop gets a {@see Reconnected}. When the last loop has ended, the connection is closed.
     *
     * @param string|list<string> $channels
     *
     * @return \Generator<int, Notification|Reconnected|NotificationsDropped> ends as the generator of
     *     {@see listen()}, and throws the same exceptions
     */
    public function listenShared(string|array $channels, ?Cancellation $cancellation = null): \Generator
    {
        if ($this->listeningEnd->isCancelled()) {
            throw ConnectionClosedException::pool();
        }
        $this->pool();
        $this->sharedListening ??= new SharedListening($this->options, $this->listeningEnd);

        return $this->sharedListening->listen((array) $channels, $cancellation);
    }

    /**
     * Returns the current state, and counters since the pool was created.
     *
     * - `in_use`: connections that are lent (exclusively or shared), being pinged or being reset; `max`: maxConnections
     * - `idle`: connections that are open and not in use; `opening`: connections that are being opened
     * - `waiting`: fibers that wait for a connection; `timed_out_total`: waits that failed due to the acquireTimeout
     * - `acquired_total`: how many times a connection was lent, exclusively or shared
     * - `opened_total`: connections opened; `lost_total`: connections that ended unexpectedly
     * - `wait_seconds_total`: total duration of all successful waits; `wait_seconds_le_0.001_total`, and the same with
     *   0.005, 0.01, 0.05, 0.1, 0.5, 1, 5 and `inf`: number of these waits of up to that many seconds. The metric is
     *   the histogram `spindle_pool_wait_seconds`
     *
     * @return array<string, int|float>
     */
    public function statistics(): array
    {
        return $this->sessions->statistics();
    }

    /** Returns whether the pool accepts no calls, because it was closed or killed. */
    public function isClosed(): bool
    {
        return $this->sessions->isClosed;
    }

    /**
     * Refuses new calls, waits until all accepted calls have ended, and closes all connections.
     *
     * Accepted calls are statements, transactions, streams and COPYs that run or wait for a connection. A transaction
     * may still run its statements, nested transactions and retries. The fibers of transactions, streams and COPYs may
     * still use the pool. A stream belongs to the fiber that reads its first row, and ends when its rows are read or
     * its generator is destroyed. This method also waits for the release of each connection that {@see acquire()} has
     * lent, or will lend to a waiting fiber. Generators of {@see listen()} and {@see listenShared()} yield the
     * notifications that have arrived, and end.
     *
     * Cancellation: ends the remaining calls as {@see kill()} does.
     *
     * @throws CancelledException
     * @throws \LogicException when this fiber has a connection of the pool, or runs a statement whose parameter calls
     *     close(). Then close() would wait for its own fiber. The pool remains unchanged
     */
    public function close(?Cancellation $cancellation = null): void
    {
        $this->pool()->refuseSelfWait($this->queryRunner);
        $this->listeningEnd->cancel();
        $this->sessions->close($cancellation);
    }

    /**
     * Closes the pool and all of its connections immediately. Running and waiting calls fail with
     * {@see ConnectionClosedException}, and so do generators of {@see listen()} and {@see listenShared()}. The client
     * asks the server to stop running statements. The event loop does not end until the server has received these
     * requests. This method does not wait.
     */
    public function kill(): void
    {
        $this->listeningEnd->cancel(ConnectionClosedException::pool());
        $this->pool()->kill();
    }

    /** Returns the sessions of the current event loop. After EventLoop::setDriver(), kills the earlier sessions. */
    private function pool(): SessionPool
    {
        $earlier = $this->sessions;
        if (EventLoop::getDriver() !== $this->loop && $earlier->belongsToThisProcess()) {
            $isClosed = $earlier->isClosed;
            $earlier->kill();
            $this->sharedListening = null;
            $isClosed ? null : $this->useCurrentLoop($earlier->counts);
        }

        return $this->sessions;
    }

    private function useCurrentLoop(PoolCounters $counts): void
    {
        $this->loop = EventLoop::getDriver();
        $factory = new SessionFactory($this->options);
        $this->sessions = new SessionPool($factory, $this->maxConnections, $this->poolOptions, $this->warn, $counts);
        $this->queryRunner = new QueryRunner($this->sessions);
    }
}
