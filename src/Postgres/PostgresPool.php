<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Amp\Cancellation;
use Spindle\Postgres\Internal\Listening;
use Spindle\Postgres\Internal\NotSerializable;
use Spindle\Postgres\Internal\Pool\QueryRunner;
use Spindle\Postgres\Internal\Pool\SessionPool;
use Spindle\Postgres\Internal\SessionFactory;
use Spindle\Postgres\Internal\TransactionRun;
use Spindle\Statistics;

/**
 * A pool of connections to a PostgreSQL server, opened on demand and reused.
 *
 * Concurrent reads share connections and round trips, if the same statements were short in earlier runs. Each other
 * statement, transaction, stream, COPY and script uses a connection exclusively. A fiber that already holds a
 * connection of the pool also gets exclusive ones for its statements. They could otherwise wait for a lock for ever.
 *
 * Waiting fibers get connections in the order in which they asked. Statements that share may overtake those that need a
 * connection exclusively. For each waiting exclusive statement, the pool sends no new shared statements to one of its
 * connections, if possible.
 *
 * Each statement sent through the pool may run on another connection. To use the same one, use {@see transaction()} or
 * borrow a connection with {@see acquire()}. When the connection is given back, changes of the session are undone.
 *
 * When a connection is lost, statements in progress on it fail, and the pool opens another. The pool recovers by itself
 * after a restart of the server. Its first connection is opened on first use. When nothing references the pool any
 * more, its connections are closed.
 */
final class PostgresPool implements PostgresLink, Statistics
{
    use NotSerializable;

    private readonly PostgresOptions $options;

    private readonly PostgresPoolOptions $poolOptions;

    private readonly SessionPool $pool;

    private readonly QueryRunner $queryRunner;

    /** @var \Closure(string): void */
    private readonly \Closure $warn;

    /**
     * @param string|PostgresOptions $options a DSN for {@see PostgresOptions::of()}, or options
     * @param int $maxConnections largest number of connections, at least 1
     *
     * @throws \ValueError when the DSN is invalid, or a number is out of its range
     */
    public function __construct(
        #[\SensitiveParameter]
        string|PostgresOptions $options = '',
        private readonly int $maxConnections = 10,
        ?PostgresPoolOptions $poolOptions = null,
    ) {
        $this->options = \is_string($options) ? PostgresOptions::of($options) : $options;
        $this->poolOptions = $poolOptions ?? new PostgresPoolOptions();
        if ($maxConnections < 1 || $maxConnections < $this->poolOptions->minConnections) {
            throw new \ValueError(
                "The option maxConnections must be 1 or more, and not below minConnections, not {$maxConnections}",
            );
        }
        $logger = $this->options->logger;
        $this->warn = $this->poolOptions->onWarning ?? static function (string $warning) use ($logger): void {
            $logger === null ? error_log("Spindle: {$warning}") : $logger->warning($warning);
        };
        $sessionFactory = new SessionFactory($this->options);
        $this->pool = new SessionPool($sessionFactory, $maxConnections, $this->poolOptions, $this->warn);
        $this->queryRunner = new QueryRunner($this->pool, $sessionFactory->supportsPipelining());
    }

    public function __destruct()
    {
        if ($this->pool->belongsToThisProcess()) {
            $this->pool->close();
        }
    }

    /** Forbidden: closing a copy would close the original. */
    private function __clone() {}

    public function query(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): Result {
        return $this->queryRunner->run($sql, $parameters, $cancellation);
    }

    public function execute(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): int {
        return $this->query($sql, $parameters, $cancellation)->affected;
    }

    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): \Generator {
        yield from TransactionRun::stream($this->pool, $sql, $parameters, $cancellation);
    }

    public function copyFrom(
        string $sql,
        #[\SensitiveParameter]
        iterable $data,
        ?Cancellation $cancellation = null,
    ): int {
        $session = $this->pool->acquire($cancellation);
        try {
            return $session->copyFrom($sql, $data, $cancellation);
        } finally {
            $this->pool->release($session);
        }
    }

    public function copyTo(string $sql, ?Cancellation $cancellation = null): \Generator
    {
        $session = $this->pool->acquire($cancellation);
        try {
            yield from $session->copyTo($sql, $cancellation);
        } finally {
            $this->pool->release($session);
        }
    }

    public function executeScript(string $sql, ?Cancellation $cancellation = null): void
    {
        $session = $this->pool->acquire($cancellation);
        try {
            $session->script($sql, $cancellation);
        } finally {
            $this->pool->release($session);
        }
    }

    public function transaction(
        \Closure $work,
        ?Isolation $isolation = null,
        int $retries = 0,
        ?Cancellation $cancellation = null,
    ): mixed {
        return TransactionRun::outermost($this->pool, $work, $isolation, $retries, $cancellation);
    }

    /**
     * Borrows a connection for work that depends on the session: settings, temporary tables, advisory locks.
     *
     * Give it back with release(). A connection that nothing references is given back with a warning.
     *
     * @throws PoolTimeoutException when none is free in time
     * @throws ConnectionFailedException when the failure is permanent, or the pool has never reached a server
     * @throws AuthenticationException
     */
    public function acquire(?Cancellation $cancellation = null): PooledConnection
    {
        $session = $this->pool->acquire($cancellation);

        return new PooledConnection($this->pool, $session, $this->poolOptions->leakAfter, $this->warn);
    }

    /**
     * Listens as {@see PostgresConnection::listen()} does, over a separate connection that does not belong to the pool.
     *
     * @param string|list<string> $channels
     *
     * @return \Generator<int, Notification|NotificationGap> endless; leaving the loop closes the connection
     */
    public function listen(string|array $channels, ?Cancellation $cancellation = null): \Generator
    {
        return Listening::to(new SessionFactory($this->options), (array) $channels, $cancellation);
    }

    public function stats(): PostgresPoolStatistics
    {
        $counts = $this->pool->counts;

        return new PostgresPoolStatistics(
            ...$this->pool->statistics(),
            maxConnections: $this->maxConnections,
            acquired: $counts->acquired,
            timedOut: $counts->timedOut,
            opened: $counts->opened,
            lost: $counts->lost,
            waitHistogram: $counts->waitHistogram,
        );
    }

    /** Returns the values of {@see stats()}, in the form that all pools share. */
    public function statistics(): array
    {
        $stats = $this->stats();

        return [
            'in_use' => $stats->inUse,
            'max' => $stats->maxConnections,
            'idle' => $stats->idle,
            'opening' => $stats->opening,
            'waiting' => $stats->waiting,
            'acquired_total' => $stats->acquired,
            'timed_out_total' => $stats->timedOut,
            'opened_total' => $stats->opened,
            'lost_total' => $stats->lost,
        ];
    }

    public function isClosed(): bool
    {
        return $this->pool->isClosed();
    }

    /**
     * Stops lending, and fails waiting fibers with a {@see ConnectionClosedException}. Closes idle connections at once,
     * and borrowed ones when they are given back.
     */
    public function close(): void
    {
        $this->pool->close();
    }

    /** Closes all connections at once; statements in progress on them fail. */
    public function kill(): void
    {
        $this->pool->kill();
    }
}
