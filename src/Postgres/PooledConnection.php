<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Amp\Cancellation;
use Spindle\Internal\NotCopyable;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\Internal\ConnectionSession;
use Spindle\Postgres\Internal\Pool\SessionPool;
use Spindle\Postgres\Internal\Protocol\PipelinedSession;
use Spindle\Postgres\Internal\SendsStatements;
use Spindle\Postgres\Internal\SessionLease;
use Spindle\Postgres\Internal\TransactionRun;

/** A connection borrowed from a pool. Its settings, temporary tables and advisory locks last until its release. */
final class PooledConnection implements PostgresLink
{
    use NotCopyable;
    use SendsStatements;

    private ?ConnectionSession $connectionSession;

    private readonly SessionLease $lease;

    private readonly string $borrowerTrace;

    private bool $isStreaming = false;

    private ?string $leakTimer = null;

    /**
     * @internal
     *
     * @param \Closure(string): mixed $warn
     */
    public function __construct(
        private readonly SessionPool $pool,
        private readonly PipelinedSession $session,
        ?float $leakDetectionThreshold,
        private readonly \Closure $warn,
    ) {
        $this->lease = new SessionLease($session);
        $this->connectionSession = new ConnectionSession($this->lease, warn: $warn);
        $this->borrowerTrace = self::stackTrace();
        if ($leakDetectionThreshold !== null) {
            $this->leakTimer = WeakTimer::after(
                $leakDetectionThreshold,
                $this,
                static fn(self $self) => $self->report("was not released within {$leakDetectionThreshold} s"),
            );
        }
    }

    public function __destruct()
    {
        if ($this->connectionSession !== null && $this->connectionSession->belongsToThisProcess()) {
            try {
                $this->report('was dropped without release()');
            } finally {
                $this->release();
            }
        }
    }

    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): \Generator {
        $rows = TransactionRun::stream($this->connectionSession(), $sql, $parameters, $cancellation);
        if (!$rows->valid()) { // sends the statement and waits for the first row
            return;
        }
        $this->isStreaming = true;
        try {
            yield from $rows;
        } finally {
            $this->isStreaming = false;
        }
    }

    /**
     * @internal Sends COMMIT for a transaction that the SQL statement BEGIN has begun.
     *
     * @throws CommitUnknownException when the connection is lost or killed before the answer
     * @throws TransactionAbortedException when a statement had failed, so the server has rolled the transaction back
     */
    public function commit(): void
    {
        $wasOpen = $this->session->isOpen();
        try {
            $this->connectionSession()->query('COMMIT', [], null);
        } catch (ConnectionLostException|ConnectionClosedException $loss) {
            $isUnsent = !$wasOpen || $loss->getPrevious() instanceof ConnectionLostException;
            throw $isUnsent ? $loss : ConnectionLostException::committing($loss);
        }
        if ($this->session->commandTag() !== 'COMMIT') {
            throw TransactionAbortedException::atCommit();
        }
    }

    /** Returns the id of the server's process, as shown in pg_stat_activity. */
    public function backendPid(): int
    {
        return $this->connectionSession()->session->backendPid();
    }

    /**
     * Returns the connection to the pool. A second call does nothing.
     *
     * Before the pool lends the connection again, the pool waits for running statements, and commits the transaction of
     * a stream that was left early. The pool also stops a COPY, rolls back an open transaction and undoes changes to
     * the session. After the release, calls on this object and reads from its streams throw a \LogicException.
     */
    public function release(): void
    {
        if ($this->connectionSession === null) {
            return;
        }
        [$connectionSession, $this->connectionSession] = [$this->connectionSession, null];
        $this->pool->loop->cancel($this->leakTimer);
        $this->session->changes->record(); // the text of statements does not show each change
        $this->pool->detachFromFiber($this->session);
        [$pool, $session, $lease] = [$this->pool, $this->session, $this->lease];
        $release = $this->isStreaming
            ? static fn() => TransactionRun::endStream($pool, $session)
            : static fn() => $pool->release($session);
        $connectionSession->afterDetached(static fn() => $lease->end($release));
    }

    private function connectionSession(): ConnectionSession
    {
        return $this->connectionSession
            ?? throw new \LogicException('The connection was released to its pool. Call acquire() for another one');
    }

    /** @param string $what rest of a sentence about the connection, such as "was dropped without release()" */
    private function report(string $what): void
    {
        ($this->warn)(
            "A connection that was borrowed from the pool {$what}. It was borrowed at\n{$this->borrowerTrace}",
        );
    }

    private static function stackTrace(): string
    {
        $lines = [];
        foreach (\array_slice(debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS, 22), 2) as $index => $frame) {
            $place = ($frame['file'] ?? '[internal]') . ':' . ($frame['line'] ?? '');
            $function = ($frame['class'] ?? '') . ($frame['type'] ?? '') . $frame['function'];
            $lines[] = "#{$index} {$place} {$function}()";
        }

        return implode("\n", $lines);
    }
}
