<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Revolt\EventLoop;
use Spindle\Postgres\Result;

/**
 * The session of one connection: lent to one borrower at a time, and shared by all fibers in between.
 *
 * A shared statement may take several steps, so no borrower gets the session while one is under way. Otherwise, the
 * statement would become part of the borrower's transaction.
 */
final class ConnectionSession implements SessionLender
{
    /** Seconds of waiting for another fiber after which a warning is logged. */
    private const WARN_AFTER_SECONDS = 10;

    private readonly FairMutex $mutex;

    private readonly int $process;

    /** Number of shared statements that are under way. */
    private int $sharedStatements = 0;

    private bool $isFinished = false;

    /** Whether the server has begun the transaction, if the session is lent for one. */
    private bool $isBegun = false;

    /** Whether a statement ended the transaction, even if another has begun since. */
    public bool $isEnded = false;

    /** The borrower that has the turn, and waits for the end of the shared statements. */
    private readonly WaitingCallers $waiting;

    /**
     * @param bool $isTransaction whether the session is lent for a transaction, which only the lender may end
     * @param (\Closure(string): void)|null $warn null for PHP's error log
     */
    public function __construct(
        public readonly Session $session,
        private readonly bool $isTransaction = false,
        private readonly ?\Closure $warn = null,
    ) {
        $this->mutex = new FairMutex(
            'The connection is busy with a transaction, a stream or a COPY. '
                . 'Use that transaction, read to the end first, or use a pool',
        );
        $this->waiting = new WaitingCallers();
        $this->process = (int) getmypid();
    }

    public function isOurs(): bool
    {
        return $this->process === getmypid();
    }

    /** @param list<mixed> $parameters */
    public function query(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): Result
    {
        $this->beginShared($cancellation);
        try {
            $this->ensureEndsNothing($sql);

            return $this->session->query($sql, $parameters, $cancellation);
        } finally {
            $this->endShared();
            $this->trackTransaction();
        }
    }

    public function script(string $sql, ?Cancellation $cancellation): void
    {
        $this->beginShared($cancellation);
        $ends = $this->isTransaction ? new TransactionEnds() : null;
        try {
            $this->session->script($sql, $cancellation, $ends);
        } finally {
            $this->endShared();
            $this->trackTransaction();
            $this->isEnded = $this->isEnded || $ends !== null && $ends->haveEnded($sql);
        }
        $this->ensureNotEnded();
    }

    /** @param iterable<string|array<array-key, mixed>> $data */
    public function copyFrom(string $sql, #[\SensitiveParameter] iterable $data, ?Cancellation $cancellation): int
    {
        $this->take($cancellation);
        try {
            return $this->session->copyFrom($sql, $data, $cancellation);
        } finally {
            $this->give($this->session);
        }
    }

    /** @return \Generator<int, string> */
    public function copyTo(string $sql, ?Cancellation $cancellation): \Generator
    {
        $this->take($cancellation);
        try {
            yield from $this->session->copyTo($sql, $cancellation);
        } finally {
            $this->give($this->session);
        }
    }

    /**
     * Yields the rows of a statement in the transaction that is open.
     *
     * @param list<mixed> $parameters
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): \Generator {
        $this->beginShared($cancellation);
        $this->endShared();
        $this->ensureEndsNothing($sql);
        try {
            foreach ($this->session->stream($sql, $parameters, $cancellation) as $index => $row) {
                yield $index => $row;
                $this->ensureUsable();
            }
        } finally {
            $this->trackTransaction();
        }
    }

    public function take(?Cancellation $cancellation): Session
    {
        $this->lock($cancellation, $this->ensureUsable(...));

        return $this->session;
    }

    public function handOver(Session $session): void
    {
        $this->mutex->handOver();
    }

    public function give(Session $session): void
    {
        $this->mutex->release();
    }

    public function warn(string $warning): void
    {
        $this->warn === null ? error_log("Spindle: {$warning}") : ($this->warn)($warning);
    }

    /**
     * Suspends until all earlier calls are done, and ends the use of the session.
     *
     * @throws \LogicException when the current fiber has a COPY open, which is then stopped
     */
    public function finish(): void
    {
        if ($this->isFinished) {
            return;
        }
        try {
            $this->lock(null, static fn() => null);
        } catch (\LogicException) {
            $this->session->stop();
            throw new \LogicException('A COPY of the transaction was neither read to the end nor left');
        } finally {
            $this->end();
            // Fibers that were waiting for the turn get an exception.
            $this->mutex->release();
        }
    }

    /** @throws \LogicException when a statement ended the transaction */
    public function ensureNotEnded(): void
    {
        if ($this->isEnded) {
            throw self::ended();
        }
    }

    public static function ended(): \LogicException
    {
        return new \LogicException(
            'A statement within the transaction has ended it. Let the function end it instead: '
                . 'it returns to commit, and throws to roll back',
        );
    }

    /** Ends the use of the session, also for fibers that are waiting for it. */
    public function end(): void
    {
        $this->isFinished = true;
    }

    /** @param \Closure(): void $ensure throws when the session can not be used */
    private function lock(?Cancellation $cancellation, \Closure $ensure): void
    {
        $this->ensureOurs();
        $this->mutex->acquire($cancellation);
        try {
            while ($this->sharedStatements > 0) {
                $this->waiting->wait($cancellation, static function (): void {});
            }
            $ensure();
        } catch (\Throwable $interruption) {
            $this->mutex->release();
            throw $interruption;
        }
    }

    /** Counts one more shared statement, once no borrower has the session. */
    private function beginShared(?Cancellation $cancellation): void
    {
        $this->ensureOurs();
        if ($this->mutex->isLocked) {
            $warning = EventLoop::unreference(EventLoop::delay(self::WARN_AFTER_SECONDS, $this->reportWait(...)));
            try {
                // The borrower that gets the turn next waits for this statement.
                $this->mutex->acquire($cancellation);
                $this->mutex->release();
            } finally {
                EventLoop::cancel($warning);
            }
        }
        $this->ensureUsable();
        ++$this->sharedStatements;
    }

    /** Logs a warning, since a deadlock between two fibers can not be detected here. */
    private function reportWait(): void
    {
        error_log(\sprintf(
            'Spindle: A statement has waited for %d s for a %s of another fiber on the same connection. '
                . 'If that fiber waits for this statement, both wait for ever.',
            self::WARN_AFTER_SECONDS,
            $this->isTransaction ? 'nested transaction or a COPY' : 'transaction, a stream or a COPY',
        ));
    }

    private function endShared(): void
    {
        if (--$this->sharedStatements === 0) {
            $this->waiting->wakeAll();
        }
    }

    private function ensureEndsNothing(string $sql): void
    {
        if ($this->isTransaction && SessionChanges::chainsTransactions($sql)) {
            $this->isEnded = true;
            throw self::ended();
        }
    }

    /** Records whether a statement ended the transaction, because later statements would not be part of it. */
    private function trackTransaction(): void
    {
        if (!$this->isTransaction) {
            return;
        }
        if ($this->session->transactionStatus() !== 'I') {
            $this->isBegun = true;
        } elseif ($this->isBegun && $this->session->isOpen()) {
            $this->isEnded = true;
        }
    }

    private function ensureUsable(): void
    {
        $this->ensureNotEnded();
        if ($this->isFinished) {
            throw new \LogicException(
                'The transaction has ended. A Transaction and its streams can only be used within the function that '
                    . 'transaction() called',
            );
        }
    }

    private function ensureOurs(): void
    {
        if (!$this->isOurs()) {
            throw new \LogicException(
                'A PostgreSQL connection can not be used in a fork of the process that opened it. Open another one',
            );
        }
    }
}
