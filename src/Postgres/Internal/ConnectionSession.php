<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\CallStack;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Result;

/**
 * Coordinates the fibers that use the session of one connection, or one transaction of a session.
 *
 * Statements of several fibers may share the session at the same time. A transaction, a COPY, and a stream outside of a
 * transaction borrow the session exclusively. A borrower first waits until no shared statement is in progress.
 * Otherwise, later round trips of a shared statement could become part of the borrower's transaction.
 */
final class ConnectionSession implements SessionLender
{
    /** Seconds after which a warning is logged about a statement that waits for another fiber. */
    private const WARN_AFTER_SECONDS = 10;

    private readonly FairMutex $mutex;
    private readonly int $ownerPid;

    /** Id of the process whose calls are accepted; null once calls are refused. */
    private ?int $acceptedPid;

    private bool $isKilled = false;
    private int $sharedStatements = 0;

    /** Number of accepted calls that have released the session and pause before a retry. */
    private int $pausedCalls = 0;

    private bool $isUseEnded = false;

    /** @var (\Closure(): void)|null called by release(), and set only while a background fiber ends a transaction */
    private ?\Closure $onRelease = null;

    /** Whether the server has begun the transaction. Always false if {@see $isTransaction} is false. */
    private bool $isBegun = false;

    /** Whether a statement has ended the transaction, or was refused because it would have ended the transaction. */
    public bool $isTransactionEnded = false;

    /** The borrower that waits for the end of all shared statements, and the callers of {@see close()}. */
    private readonly FiberQueue $waiting;

    /** Whether {@see onIdle()} must be called when no shared statement is in progress any more. */
    private bool $isIdleAwaited = false;

    /**
     * @param bool $isTransaction whether this object serves one transaction, which no statement may end
     * @param (\Closure(string): mixed)|null $warn logs warnings; null for PHP's error log
     */
    public function __construct(
        public readonly Session $session,
        private readonly bool $isTransaction = false,
        private readonly ?\Closure $warn = null,
    ) {
        $this->mutex = new FairMutex(
            'The connection is busy with a transaction, a stream or a COPY',
            'Use that transaction, read the stream or the COPY to the end first, or use a pool',
            $session,
        );
        $this->waiting = new FiberQueue();
        $this->ownerPid = $this->acceptedPid = (int) getmypid();
    }

    public function belongsToThisProcess(): bool
    {
        return $this->ownerPid === getmypid();
    }

    /** @param list<mixed> $parameters */
    public function query(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): Result
    {
        $this->beginShared($cancellation);
        try {
            $this->refuseChain($sql);
            return $this->session->query($sql, $parameters, $cancellation);
        } finally {
            $this->endShared();
            $this->trackTransaction();
        }
    }

    public function script(string $sql, ?Cancellation $cancellation): void
    {
        $this->beginShared($cancellation);
        $endDetector = $this->isTransaction ? new TransactionEndDetector() : null;
        try {
            $this->session->script($sql, $cancellation, $endDetector);
        } finally {
            $this->endShared();
            $this->trackTransaction();
            $this->isTransactionEnded = $this->isTransactionEnded
                || $endDetector !== null && $endDetector->hasEnded($sql);
        }
        $this->ensureTransactionNotEnded();
    }

    /** @param iterable<string|array<array-key, mixed>> $data */
    public function copyFrom(string $sql, #[\SensitiveParameter] iterable $data, ?Cancellation $cancellation): int
    {
        $this->acquire($cancellation);
        try {
            return $this->session->copyFrom($sql, $data, $cancellation);
        } finally {
            $this->release($this->session);
        }
    }

    /** @return \Generator<int, string> */
    public function copyTo(string $sql, ?Cancellation $cancellation): \Generator
    {
        $this->acquire($cancellation);
        try {
            yield from $this->session->copyTo($sql, $cancellation);
        } finally {
            $this->release($this->session);
        }
    }

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
    ): \Generator {
        $this->beginShared($cancellation);
        try {
            try {
                $this->refuseChain($sql);
                $rows = $this->session->stream($sql, $parameters, $cancellation);
                $rows->valid(); // sends the statement and waits for the first row
            } finally {
                $this->endShared();
            }
            for (; $rows->valid(); $rows->next()) {
                yield $rows->key() => $rows->current();
                $this->ensureUsable();
            }
        } finally {
            $this->trackTransaction();
        }
    }

    public function acquire(?Cancellation $cancellation): Session
    {
        $this->ensureAccepts();
        $this->lock($cancellation, $this->ensureUsable(...));

        return $this->session;
    }

    public function acquireAgain(Session $session, float $pause, ?Cancellation $cancellation): Session
    {
        ++$this->pausedCalls;
        try {
            $this->release($session);
            (new Condition())->waitFor($pause, $cancellation);
            $this->lock($cancellation, $this->ensureUsable(...));

            return $session;
        } finally {
            --$this->pausedCalls;
            $this->onIdle();
        }
    }

    public function detachFromFiber(Session $session): void
    {
        $this->onRelease = static fn() => null;
        $this->mutex->forgetHolder();
    }

    public function release(Session $session): void
    {
        $this->mutex->release();
        $this->onIdle();
        [$then, $this->onRelease] = [$this->onRelease, null];
        $then === null ? null : $then();
    }

    /**
     * Calls `$then` now. If a background fiber is ending a transaction, the next {@see release()} calls `$then`.
     *
     * @param \Closure(): void $then
     */
    public function afterDetached(\Closure $then): void
    {
        $this->onRelease === null ? $then() : $this->onRelease = $then;
    }

    public function isClosed(): bool
    {
        return $this->acceptedPid === null || !$this->session->isOpen();
    }

    /** Refuses new calls, and closes the session as soon as no accepted call uses it. */
    public function refuseCalls(): void
    {
        $this->acceptedPid = null;
        $this->onIdle();
    }

    public function isUsedByCurrentFiber(): bool
    {
        return ($this->mutex->isMine() || CallStack::hasCallOf($this->session))
            && $this->belongsToThisProcess() && $this->isInUse();
    }

    /** Refuses new calls, waits for the accepted calls, and closes the session. A cancellation calls {@see kill()}. */
    public function close(?Cancellation $cancellation): void
    {
        if (!$this->belongsToThisProcess()) {
            $this->kill();
        }
        $this->refuseCalls();
        while ($this->isInUse()) {
            $this->waiting->waitOrKill($cancellation, $this->kill(...), $this);
        }
    }

    public function kill(): void
    {
        $this->acceptedPid = null;
        $this->isKilled = true;
        $this->session->stop();
        $this->session->close();
        $this->waiting->wakeAll();
    }

    public function warn(string $warning): void
    {
        $this->warn === null ? error_log("Spindle: {$warning}") : ($this->warn)($warning);
    }

    /**
     * Suspends until all earlier calls have ended, and makes all further calls fail.
     *
     * @throws \LogicException in a fork; also when the current fiber has an open COPY, which this method cancels
     */
    public function awaitCallsAndEndUse(): void
    {
        if ($this->isUseEnded || $this->belongsToThisProcess() && !$this->isInUse()) {
            $this->endUse();

            return;
        }
        try {
            $this->lock(null, static fn() => null);
        } catch (ConnectionClosedException|ConnectionLostException) {
            // The session has ended, so the earlier calls have failed. The next statement of the caller fails, too.
        } catch (\LogicException) {
            $this->session->stop();
            $this->ensureSameProcess();
            throw new \LogicException(
                'The function of the transaction has returned while a copyTo() was open. '
                    . 'Read its rows to the end, or unset its generator',
            );
        } finally {
            $this->endUse();
            // Each fiber that waits for the mutex is resumed, and its call fails.
            $this->mutex->release();
        }
    }

    public function ensureTransactionNotEnded(): void
    {
        if ($this->isTransactionEnded) {
            throw self::transactionEnded();
        }
    }

    public static function transactionEnded(): \LogicException
    {
        return new \LogicException(
            'A statement within the transaction has ended the transaction, or was refused because it would end it. '
                . 'Return from the function to commit, or throw an exception to roll back',
        );
    }

    /** Makes all further calls fail, including calls that are waiting for the session. */
    public function endUse(): void
    {
        $this->isUseEnded = true;
    }

    /** @param \Closure(): void $ensure throws when the session can not be used */
    private function lock(?Cancellation $cancellation, \Closure $ensure): void
    {
        $this->ensureSameProcess();
        $this->mutex->acquire($cancellation);
        try {
            while ($this->sharedStatements > 0) {
                $this->isIdleAwaited = true;
                $this->waiting->wait($cancellation);
            }
            $this->ensureSameProcess(); // a fork also resumes its copies of the parent's waiting fibers
            $ensure();
        } catch (\Throwable $interruption) {
            $this->release($this->session);
            throw $interruption;
        }
    }

    /** Suspends until no borrower has the session, and increments the number of shared statements. */
    private function beginShared(?Cancellation $cancellation): void
    {
        $this->ensureAccepts();
        if ($this->mutex->isLocked) {
            $loop = EventLoop::getDriver();
            $warning = $loop->unreference($loop->delay(self::WARN_AFTER_SECONDS, $this->warnOfLongWait(...)));
            try {
                // Further statements may share the session. A later borrower waits in lock() until all have ended.
                $this->mutex->acquire($cancellation);
                $this->mutex->release();
            } finally {
                $loop->cancel($warning);
            }
        }
        $this->ensureUsable();
        ++$this->sharedStatements;
    }

    /** Logs a warning, because the borrower may wait for this statement. This class can't detect such a deadlock. */
    private function warnOfLongWait(): void
    {
        $this->warn(\sprintf(
            'A statement has waited for %d s for a %s of another fiber on the same connection. '
                . 'If that fiber waits for this statement, both wait for ever.',
            self::WARN_AFTER_SECONDS,
            $this->isTransaction ? 'nested transaction or a COPY' : 'transaction, a stream or a COPY',
        ));
    }

    private function endShared(): void
    {
        if (--$this->sharedStatements === 0 && $this->isIdleAwaited) {
            $this->onIdle();
        }
    }

    /** Resumes the fibers in {@see $waiting}. After {@see refuseCalls()}, closes the session if no call uses it. */
    private function onIdle(): void
    {
        $this->isIdleAwaited = $this->acceptedPid === null;
        $this->waiting->wakeAll();
        if ($this->acceptedPid === null && !$this->isInUse()) {
            $this->session->close();
        }
    }

    private function isInUse(): bool
    {
        return !$this->isKilled && ($this->sharedStatements > 0 || $this->pausedCalls > 0 || $this->mutex->isLocked);
    }

    /** Refuses COMMIT and ROLLBACK with AND CHAIN: the chained transaction would hide the end of the current one. */
    private function refuseChain(string $sql): void
    {
        if ($this->isTransaction && SessionChanges::chainsTransactions($sql)) {
            $this->isTransactionEnded = true;
            throw self::transactionEnded();
        }
    }

    /** Detects whether a statement ended the transaction, so that later statements are refused. */
    private function trackTransaction(): void
    {
        if (!$this->isTransaction) {
            return;
        }
        if ($this->session->transactionStatus() !== 'I') {
            $this->isBegun = true;
        } elseif ($this->isBegun && $this->session->isOpen()) {
            $this->isTransactionEnded = true;
        }
    }

    private function ensureUsable(): void
    {
        $this->ensureTransactionNotEnded();
        if ($this->isUseEnded) {
            throw new \LogicException(
                'The transaction has ended. A Transaction and its streams can only be used within the function that '
                    . 'transaction() called',
            );
        }
    }

    private function ensureAccepts(): void
    {
        if ($this->acceptedPid !== getmypid()) {
            $this->ensureSameProcess();
            throw ConnectionClosedException::connection();
        }
        FiberSwitch::ensurePossible();
    }

    private function ensureSameProcess(): void
    {
        if (!$this->belongsToThisProcess()) {
            throw new \LogicException(
                'A PostgreSQL connection can not be used in a fork of the process that opened it. '
                    . 'Open another connection in the fork',
            );
        }
    }
}
