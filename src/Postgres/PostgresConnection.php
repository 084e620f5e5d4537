<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Postgres\Internal\Listening;
use Spindle\Postgres\Internal\NotSerializable;
use Spindle\Postgres\Internal\OnlySession;
use Spindle\Postgres\Internal\Sessions;
use Spindle\Postgres\Internal\TransactionRun;

/**
 * One connection to a PostgreSQL server. Statements that fibers send at the same time share round trips and run in the order in
 * which they were sent; while a transaction or a stream is open, those of others wait for its end.
 *
 * It is closed when nobody holds it any more. A connection that was lost stays lost: {@see PostgresPool} opens others.
 */
final class PostgresConnection implements PostgresLink
{
    use NotSerializable;

    private function __construct(private readonly OnlySession $held, private readonly PostgresOptions $options) {}

    public function __destruct()
    {
        if ($this->held->isOurs()) {
            $this->held->session->close();
        }
    }

    /** Forbidden: closing a copy would close the original. */
    private function __clone() {}

    /**
     * Suspends until the connection stands.
     *
     * @param string|PostgresOptions $options a DSN as {@see PostgresOptions::of()} takes it, or options
     *
     * @throws ConnectionFailedException when no server is to be had
     * @throws AuthenticationException   when the server refuses the login, or can't prove that it knows the password
     * @throws CancelledException
     */
    public static function connect(#[\SensitiveParameter] string|PostgresOptions $options = '', ?Cancellation $cancellation = null): self
    {
        $options = \is_string($options) ? PostgresOptions::of($options) : $options;

        return new self(new OnlySession((new Sessions($options))->open($cancellation)), $options);
    }

    public function query(string $sql, #[\SensitiveParameter] array $parameters = [], ?Cancellation $cancellation = null): Result
    {
        return $this->held->query($sql, $parameters, $cancellation);
    }

    public function execute(string $sql, #[\SensitiveParameter] array $parameters = [], ?Cancellation $cancellation = null): int
    {
        return $this->held->query($sql, $parameters, $cancellation)->affected;
    }

    public function stream(string $sql, #[\SensitiveParameter] array $parameters = [], ?Cancellation $cancellation = null): \Generator
    {
        yield from TransactionRun::stream($this->held, $sql, $parameters, $cancellation);
    }

    public function copyFrom(string $sql, #[\SensitiveParameter] iterable $data, ?Cancellation $cancellation = null): int
    {
        return $this->held->copyFrom($sql, $data, $cancellation);
    }

    public function copyTo(string $sql, ?Cancellation $cancellation = null): \Generator
    {
        yield from $this->held->copyTo($sql, $cancellation);
    }

    public function executeScript(string $sql, ?Cancellation $cancellation = null): void
    {
        $this->held->script($sql, $cancellation);
    }

    public function transaction(\Closure $work, ?Isolation $isolation = null, int $retries = 0, ?Cancellation $cancellation = null): mixed
    {
        return TransactionRun::outermost($this->held, $work, $isolation, $retries, $cancellation);
    }

    /**
     * What is told by NOTIFY on these channels, from when the first value is asked for, on a connection of its own. When that one is
     * lost another is opened, as soon as there is a server, and a {@see NotificationGap} tells that something may be missing.
     *
     * @param string|list<string> $channels
     *
     * @return \Generator<int, Notification|NotificationGap> without end; leaving the loop closes the connection
     *
     * @throws ConnectionFailedException when there is no server at the beginning
     * @throws AuthenticationException
     */
    public function listen(string|array $channels, ?Cancellation $cancellation = null): \Generator
    {
        return Listening::to(new Sessions($this->options), (array) $channels, $cancellation);
    }

    /** Of the server's process, as pg_stat_activity shows it. */
    public function backendPid(): int
    {
        return $this->held->session->backendPid();
    }

    public function isClosed(): bool
    {
        return !$this->held->session->isOpen();
    }

    /** Ends it at once: what is under way fails and is stopped, a transaction is rolled back. */
    public function close(): void
    {
        $this->held->session->stop();
        $this->held->session->close();
    }
}
