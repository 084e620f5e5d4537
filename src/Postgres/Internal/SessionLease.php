<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\Result;

/**
 * Gives a borrower access to a session until {@see end()}. After that, statements throw a \LogicException, and
 * {@see isOpen()} returns false. So generators and fibers of this borrower can not affect the next borrower.
 */
final class SessionLease implements Session
{
    private bool $isOver = false;

    /** Number of {@see copyTo()} generators that have started and not ended. */
    private int $openCopyCount = 0;

    /**
     * Number of pending calls. A call that returns a generator is pending until its first row. A pending statement may
     * be unsent, because its fiber is encoding a value, reading data for a COPY or waiting for BEGIN.
     */
    private int $pendingCallCount = 0;

    /** @var (\Closure(): void)|null closure passed to {@see end()}; called when no call is pending */
    private ?\Closure $release = null;

    public function __construct(private readonly Session $session) {}

    /**
     * Ends the lease. Cancels an open COPY … TO STDOUT on the server, because no reader will fetch its rows.
     *
     * @param \Closure(): void $release called as soon as no call is pending
     */
    public function end(\Closure $release): void
    {
        $this->isOver = true;
        if ($this->openCopyCount > 0) {
            $this->session->stop();
        }
        $this->pendingCallCount === 0 ? $release() : $this->release = $release;
    }

    public function query(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): Result {
        return $this->call(fn(): Result => $this->session->query($sql, $parameters, $cancellation));
    }

    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): \Generator {
        yield from $this->rows(fn(): \Generator => $this->session->stream($sql, $parameters, $cancellation));
    }

    public function copyFrom(string $sql, #[\SensitiveParameter] iterable $data, ?Cancellation $cancellation): int
    {
        return $this->call(fn(): int => $this->session->copyFrom($sql, $data, $cancellation));
    }

    public function copyTo(string $sql, ?Cancellation $cancellation): \Generator
    {
        ++$this->openCopyCount;
        try {
            yield from $this->rows(fn(): \Generator => $this->session->copyTo($sql, $cancellation));
        } finally {
            --$this->openCopyCount;
        }
    }

    public function script(
        string $sql,
        ?Cancellation $cancellation = null,
        ?TransactionEndDetector $endDetector = null,
    ): void {
        $this->call(fn() => $this->session->script($sql, $cancellation, $endDetector));
    }

    public function inFlight(): int
    {
        return $this->isOver ? 0 : $this->session->inFlight();
    }

    public function begin(string $sql, ?Cancellation $cancellation): void
    {
        $this->session()->begin($sql, $cancellation);
    }

    public function discardUnsentBegin(): bool
    {
        return !$this->isOver && $this->session->discardUnsentBegin();
    }

    public function commandTag(): string
    {
        return $this->session->commandTag();
    }

    public function settle(?Cancellation $cancellation = null): void
    {
        if (!$this->isOver) {
            $this->session->settle($cancellation);
        }
    }

    public function stop(): void
    {
        if (!$this->isOver) {
            $this->session->stop();
        }
    }

    public function isOpen(): bool
    {
        return !$this->isOver && $this->session->isOpen();
    }

    public function transactionStatus(): string
    {
        return $this->isOver ? 'I' : $this->session->transactionStatus();
    }

    public function backendPid(): int
    {
        return $this->session()->backendPid();
    }

    public function close(?ConnectionClosedException $reason = null): void
    {
        if (!$this->isOver) {
            $this->session->close($reason);
        }
    }

    public function endWaitsFor(FairMutex $mutex): void
    {
        $this->session->endWaitsFor($mutex);
    }

    /**
     * @template T
     *
     * @param \Closure(): T $call has no parameters, because a stack trace would show their values
     *
     * @return T
     */
    private function call(#[\SensitiveParameter] \Closure $call): mixed
    {
        $this->session();
        ++$this->pendingCallCount;
        try {
            return $call();
        } finally {
            if (--$this->pendingCallCount === 0 && $this->release !== null) {
                ($this->release)();
            }
        }
    }

    /**
     * @template T
     *
     * @param \Closure(): \Generator<int, T> $start
     *
     * @return \Generator<int, T>
     */
    private function rows(#[\SensitiveParameter] \Closure $start): \Generator
    {
        $rows = $this->call(static function () use ($start): \Generator {
            $rows = $start();
            $rows->valid(); // sends the statement and waits for the first row

            return $rows;
        });
        $this->session();
        for (; $rows->valid(); $rows->next()) {
            yield $rows->key() => $rows->current();
            $this->session();
        }
    }

    private function session(): Session
    {
        return $this->isOver
            ? throw new \LogicException('The connection was released to its pool. Call acquire() for another one')
            : $this->session;
    }
}
