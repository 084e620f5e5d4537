<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Amp\Cancellation;
use Spindle\Postgres\Internal\Listening;
use Spindle\Postgres\Internal\NotSerializable;
use Spindle\Postgres\Internal\Pool\Queries;
use Spindle\Postgres\Internal\Pool\Roster;
use Spindle\Postgres\Internal\Sessions;
use Spindle\Postgres\Internal\TransactionRun;
use Spindle\Statistics;

/**
 * Connections to a PostgreSQL server that are opened as they are needed and used again.
 *
 * Reads that were short when they ran before share connections and round trips with others that fibers send at the same time. Each other
 * statement, each transaction, stream, COPY and script has a connection for itself. A fiber that holds a connection of the pool never
 * waits behind a statement of another fiber: what it sends through the pool itself needs a free connection.
 *
 * Those that wait get connections in the order in which they asked, but statements that share may go ahead of those that need a
 * connection alone. For each of the latter one connection is kept that no more statements join, as far as there are connections.
 *
 * Statements sent through the pool itself may each run on another connection: what is to happen on one belongs in a {@see transaction()},
 * or on a connection that is borrowed by {@see acquire()}. What a borrower changed of the session is undone when it comes back.
 *
 * A connection that is lost fails what is under way on it, and another takes its place; a server that is started again needs no
 * help. The pool opens its first connection when it is used first, and closes all when nobody holds it any more.
 */
final class PostgresPool implements PostgresLink, Statistics
{
    use NotSerializable;

    private readonly PostgresOptions $options;

    private readonly PostgresPoolOptions $poolOptions;

    private readonly Roster $roster;

    private readonly Queries $queries;

    /** @var \Closure(string): void */
    private readonly \Closure $warn;

    /**
     * @param string|PostgresOptions $options a DSN as {@see PostgresOptions::of()} takes it, or options
     * @param int                    $maxConnections at least 1
     *
     * @throws \ValueError when the DSN can't be read, or a number is out of its range
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
            throw new \ValueError("The option maxConnections must be 1 or more, and not below minConnections, not {$maxConnections}");
        }
        $logger = $this->options->logger;
        $this->warn = $this->poolOptions->onWarning ?? static function (string $warning) use ($logger): void {
            $logger === null ? error_log("Spindle: {$warning}") : $logger->warning($warning);
        };
        $sessions = new Sessions($this->options);
        $this->roster = new Roster($sessions, $maxConnections, $this->poolOptions, $this->warn);
        $this->queries = new Queries($this->roster, $sessions->pipeline());
    }

    public function __destruct()
    {
        if ($this->roster->isOurs()) {
            $this->roster->close();
        }
    }

    /** Forbidden: closing a copy would close the original. */
    private function __clone() {}

    public function query(string $sql, #[\SensitiveParameter] array $parameters = [], ?Cancellation $cancellation = null): Result
    {
        return $this->queries->run($sql, $parameters, $cancellation);
    }

    public function execute(string $sql, #[\SensitiveParameter] array $parameters = [], ?Cancellation $cancellation = null): int
    {
        return $this->query($sql, $parameters, $cancellation)->affected;
    }

    public function stream(string $sql, #[\SensitiveParameter] array $parameters = [], ?Cancellation $cancellation = null): \Generator
    {
        yield from TransactionRun::stream($this->roster, $sql, $parameters, $cancellation);
    }

    public function copyFrom(string $sql, #[\SensitiveParameter] iterable $data, ?Cancellation $cancellation = null): int
    {
        $session = $this->roster->take($cancellation);
        try {
            return $session->copyFrom($sql, $data, $cancellation);
        } finally {
            $this->roster->give($session);
        }
    }

    public function copyTo(string $sql, ?Cancellation $cancellation = null): \Generator
    {
        $session = $this->roster->take($cancellation);
        try {
            yield from $session->copyTo($sql, $cancellation);
        } finally {
            $this->roster->give($session);
        }
    }

    public function executeScript(string $sql, ?Cancellation $cancellation = null): void
    {
        $session = $this->roster->take($cancellation);
        try {
            $session->script($sql, $cancellation);
        } finally {
            $this->roster->give($session);
        }
    }

    public function transaction(\Closure $work, ?Isolation $isolation = null, int $retries = 0, ?Cancellation $cancellation = null): mixed
    {
        return TransactionRun::outermost($this->roster, $work, $isolation, $retries, $cancellation);
    }

    /**
     * Borrows a connection, for what concerns a session: settings, temporary tables, advisory locks. It comes back to the pool by its
     * release(), or when nobody holds it any more, which is reported.
     *
     * @throws PoolTimeoutException      when none is free in time
     * @throws ConnectionFailedException when none can be opened: for a reason that will not pass by itself, or since no server was ever reached
     * @throws AuthenticationException
     */
    public function acquire(?Cancellation $cancellation = null): PooledConnection
    {
        $session = $this->roster->take($cancellation);

        return new PooledConnection($this->roster, $session, $this->poolOptions->leakAfter, $this->warn);
    }

    /**
     * As {@see PostgresConnection::listen()}: on a connection of its own, which is none of the pool's.
     *
     * @param string|list<string> $channels
     *
     * @return \Generator<int, Notification|NotificationGap> without end; leaving the loop closes the connection
     */
    public function listen(string|array $channels, ?Cancellation $cancellation = null): \Generator
    {
        return Listening::to(new Sessions($this->options), (array) $channels, $cancellation);
    }

    public function stats(): PostgresPoolStatistics
    {
        $counts = $this->roster->counts;

        return new PostgresPoolStatistics(
            ...$this->roster->figures(),
            maxConnections: $this->maxConnections,
            acquired: $counts->acquired,
            timedOut: $counts->timedOut,
            opened: $counts->opened,
            lost: $counts->lost,
            waited: $counts->waited,
        );
    }

    /** What {@see stats()} says, for those who watch pools of all kinds. */
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
        return $this->roster->isClosed();
    }

    /**
     * Nobody gets a connection any more. Connections that nobody uses are closed at once, others when they are given back; who waits for
     * one gets a {@see ConnectionClosedException}.
     */
    public function close(): void
    {
        $this->roster->close();
    }

    /** Ends all connections at once, and fails what is under way on them. */
    public function kill(): void
    {
        $this->roster->kill();
    }
}
