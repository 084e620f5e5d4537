<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Internal\Async\Timeout;
use Spindle\Internal\Backoff;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\DeadlockException;
use Spindle\Postgres\Isolation;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\Result;
use Spindle\Postgres\SerializationFailureException;
use Spindle\Postgres\Transaction;
use Spindle\Postgres\TransactionAbortedException;

use function Amp\async;

/** Runs functions in transactions or savepoints. Runs the statement of a stream in its own transaction. */
final class TransactionRun
{
    /** Maximum seconds to wait for statements in flight before a ROLLBACK. After that, the statements are cancelled. */
    private const MAX_SETTLE_SECONDS = 0.1;

    /**
     * Runs a function in a transaction. After a deadlock or serialization failure, repeats the function in another
     * transaction, up to `$retries` times.
     *
     * @template T
     *
     * @param SessionLender $lender if its session has an open transaction, this method throws a \LogicException
     * @param \Closure(Transaction): T $work
     *
     * @return T
     */
    public static function run(
        SessionLender $lender,
        \Closure $work,
        ?Isolation $isolation,
        int $retries,
        ?Cancellation $cancellation,
    ): mixed {
        if ($retries < 0) {
            throw new \ValueError("The number of retries must be 0 or more, not {$retries}");
        }
        $pause = null;
        $advice = 'so transaction() can not begin another. End that transaction first, '
            . 'or use transaction() for it, too';
        $session = self::ensureNoTransaction($lender->acquire($cancellation), $lender, $advice);
        try {
            for ($attempt = 1;; ++$attempt) {
                try {
                    return self::attempt($lender, $session, $work, $isolation, $cancellation);
                } catch (DeadlockException|SerializationFailureException $failure) {
                    if ($attempt > $retries) {
                        throw $failure;
                    }
                }
                $pause ??= new Backoff(delay: 0.01, factor: 2.0, maxDelay: 1.0, jitter: 0.5);
                $released = $session;
                $session = null;
                $session = self::ensureNoTransaction(
                    $lender->acquireAgain($released, $pause->after($attempt), $cancellation),
                    $lender,
                    $advice,
                );
            }
        } finally {
            if ($session !== null) {
                self::release($lender, $session, 'ROLLBACK');
            }
        }
    }

    /**
     * Runs a statement in its own transaction, and yields its rows. Commits after the last row, or when the caller's
     * loop ends earlier.
     *
     * @param list<mixed> $parameters
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public static function stream(
        SessionLender $lender,
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): \Generator {
        $session = self::ensureNoTransaction(
            $lender->acquire($cancellation),
            $lender,
            'so stream() can not begin its own. End that transaction first, declare a cursor in it, '
                . 'or use transaction() and call stream() of its Transaction',
        );
        $end = 'COMMIT';
        try {
            $session->begin('BEGIN', $cancellation);
            yield from $session->stream($sql, $parameters, $cancellation);
            self::commit($session, $lender, $cancellation);
        } catch (\Throwable $failure) {
            $end = 'ROLLBACK';
            self::rollBack($session);
            throw $failure;
        } finally {
            self::release($lender, $session, $end);
        }
    }

    /** Releases the session of a stream that was left early. If its transaction is open, a new fiber commits first. */
    public static function endStream(SessionLender $lender, Session $session): void
    {
        self::release($lender, $session, 'COMMIT');
    }

    /**
     * Runs a function in a savepoint of the open transaction. If the function fails, rolls back to the savepoint.
     *
     * @template T
     *
     * @param int $depth number of enclosing transactions
     * @param \Closure(Transaction): T $work
     *
     * @return T
     */
    public static function nest(SessionLender $lender, int $depth, \Closure $work, ?Cancellation $cancellation): mixed
    {
        $name = "spindle_{$depth}";
        $session = $lender->acquire($cancellation);
        $transactionSession = new ConnectionSession($session, isTransaction: true, warn: $lender->warn(...));
        $hasSavepoint = $isOver = false;
        try {
            // A cancelled SAVEPOINT would make the whole transaction fail.
            self::queryUnstopped($session, "SAVEPOINT {$name}", $cancellation);
            $hasSavepoint = true;
            $cancellation?->throwIfRequested();
            $result = $work(new Transaction($transactionSession, $depth));
            CancellationLimit::during($session, $cancellation, $transactionSession->awaitCallsAndEndUse(...));
            $transactionSession->ensureTransactionNotEnded();
            $session->settle($cancellation);
            if ($session->isOpen() && $session->transactionStatus() === 'E') {
                throw TransactionAbortedException::atCommit();
            }
            $cancellation?->throwIfRequested();
            // After a cancelled RELEASE, it would be unknown whether the savepoint exists.
            try {
                self::queryUnstopped($session, "RELEASE SAVEPOINT {$name}", $cancellation);
            } catch (ConnectionLostException $lost) {
                throw $lost->afterSending();
            }
            $isOver = true;

            return $result;
        } catch (\Throwable $failure) {
            $undo = $hasSavepoint ? static fn() => self::rollBackTo($session, $name, $failure) : static fn() => null;
            self::endAfterFailure($transactionSession, $undo, $cancellation);
            $isOver = true;
            throw $failure;
        } finally {
            $transactionSession->endUse();
            if ($transactionSession->isTransactionEnded && $lender instanceof ConnectionSession) {
                $lender->isTransactionEnded = true;
            }
            if ($isOver || !$hasSavepoint) {
                $lender->release($session);
            } else {
                // The fiber is being destroyed, so nothing may suspend here.
                $lender->detachFromFiber($session);
                async(static function () use ($lender, $session, $name): void {
                    self::rollBackTo($session, $name, null);
                    $lender->release($session);
                })->ignore();
            }
        }
    }

    /**
     * @template T
     *
     * @param \Closure(Transaction): T $work
     *
     * @return T
     */
    private static function attempt(
        SessionLender $lender,
        Session $session,
        \Closure $work,
        ?Isolation $isolation,
        ?Cancellation $cancellation,
    ): mixed {
        $transactionSession = new ConnectionSession($session, isTransaction: true, warn: $lender->warn(...));
        try {
            $session->begin(
                'BEGIN' . ($isolation === null ? '' : " ISOLATION LEVEL {$isolation->value}"),
                $cancellation,
            );
            $result = $work(new Transaction($transactionSession, 0));
            CancellationLimit::during($session, $cancellation, $transactionSession->awaitCallsAndEndUse(...));
            $transactionSession->ensureTransactionNotEnded();
            $cancellation?->throwIfRequested();
            $session->settle($cancellation);
            self::commit($session, $lender, $cancellation);

            return $result;
        } catch (\Throwable $failure) {
            self::endAfterFailure($transactionSession, static fn() => self::rollBack($session), $cancellation);
            throw $failure;
        } finally {
            $transactionSession->endUse();
        }
    }

    /** Returns the session. If it has an open transaction, releases the session and throws a \LogicException. */
    private static function ensureNoTransaction(Session $session, SessionLender $lender, string $advice): Session
    {
        if ($session->isOpen() && $session->inFlight() === 0 && $session->transactionStatus() !== 'I') {
            $lender->release($session);
            throw new \LogicException("A statement has begun a transaction on this connection, {$advice}");
        }

        return $session;
    }

    /** @param \Closure(): void $rollBack */
    private static function endAfterFailure(
        ConnectionSession $transactionSession,
        \Closure $rollBack,
        ?Cancellation $cancellation,
    ): void {
        $end = static function () use ($transactionSession, $rollBack): void {
            try {
                $transactionSession->awaitCallsAndEndUse();
            } catch (\LogicException) {
                // The caller gets the failure of the function, so the error about a COPY that is still open is dropped.
            }
            $rollBack();
        };
        CancellationLimit::during($transactionSession->session, $cancellation, $end);
    }

    /** Executes a statement. A cancellation does not stop the statement, but limits the wait for its answer. */
    private static function queryUnstopped(Session $session, string $sql, ?Cancellation $cancellation): void
    {
        CancellationLimit::during($session, $cancellation, static fn(): Result => $session->query($sql));
    }

    /** Rolls back to a savepoint, and removes the savepoint. If that fails, the outer transaction fails, too. */
    private static function rollBackTo(Session $session, string $name, ?\Throwable $failure): void
    {
        try {
            // The wait for answers has a limit only after a cancellation. The server may need long to fetch rows for a
            // stream() of the outer transaction.
            $limit = $failure instanceof CancelledException ? new Timeout(CancellationLimit::SECONDS) : null;
            $session->settle($limit);
            if ($session->isOpen()) {
                $limit ??= new Timeout(CancellationLimit::SECONDS);
                $session->query("ROLLBACK TO SAVEPOINT {$name}", [], $limit);
                $session->query("RELEASE SAVEPOINT {$name}", [], $limit);
            }
        } catch (PostgresException) {
            return;
        } catch (CancelledException) {
            $session->close();
        }
    }

    /**
     * Releases the session of a transaction. The transaction is still open if the caller has ended its loop over a
     * stream early, or the fiber is being destroyed. In both cases, this method must not suspend, so another fiber ends
     * the transaction and releases the session.
     *
     * @param string $end COMMIT or ROLLBACK
     */
    private static function release(SessionLender $lender, Session $session, string $end): void
    {
        $isOver = $session->discardUnsentBegin()
            || $session->inFlight() === 0 && $session->transactionStatus() === 'I'
            || $end === 'ROLLBACK' && !$session->isOpen();
        if ($isOver) {
            $lender->release($session);
        } else {
            $lender->detachFromFiber($session);
            async(self::endInBackground(...), $lender, $session, $end)->ignore();
        }
    }

    /** Ends a transaction, and releases its session. Logs a failed COMMIT, because no caller waits for the COMMIT. */
    private static function endInBackground(SessionLender $lender, Session $session, string $end): void
    {
        $failure = null;
        if ($end === 'COMMIT') {
            try {
                $session->settle(new Timeout(CancellationLimit::SECONDS));
                // If the caller's fiber was destroyed while it waited for the answer to COMMIT, no transaction is open.
                if (!$session->isOpen() || $session->transactionStatus() !== 'I') {
                    self::commit($session, $lender, null);
                }
            } catch (\Throwable $failure) {
            }
        }
        self::rollBack($session);
        $lender->release($session);
        if ($failure !== null) {
            $reason = match (true) {
                $failure instanceof CancelledException => \sprintf(
                    'the server did not finish a fetch of rows within %d s, so the statement was cancelled',
                    CancellationLimit::SECONDS,
                ),
                $failure instanceof TransactionAbortedException => 'a row that was not read caused an error',
                default => $failure->getMessage(),
            };
            $lender->warn("A loop over stream() was left early, and the commit of its transaction failed: {$reason}");
        }
    }

    /** Commits the transaction. A cancellation limits the wait for the answer, but does not stop the COMMIT. */
    private static function commit(Session $session, SessionLender $lender, ?Cancellation $cancellation): void
    {
        $isUnsent = $session->discardUnsentBegin();
        if ($isUnsent && $session->isOpen()) {
            return;
        }
        if ($session->transactionStatus() === 'E') {
            throw TransactionAbortedException::atCommit();
        }
        if ($session->isOpen() && $session->transactionStatus() === 'I') {
            throw ConnectionSession::transactionEnded();
        }
        $wasOpen = $session->isOpen();
        try {
            PendingCommit::await($session, $lender->warn(...), $cancellation);
        } catch (ConnectionLostException|ConnectionClosedException $loss) {
            throw match (true) {
                $wasOpen => ConnectionLostException::committing($loss),
                $loss instanceof ConnectionLostException && !$isUnsent => $loss->afterSending(),
                default => $loss,
            };
        }
        if ($session->commandTag() !== 'COMMIT') {
            throw TransactionAbortedException::atCommit();
        }
    }

    /** Rolls back the transaction. If that fails or takes too long, closes the session, which ends the transaction. */
    private static function rollBack(Session $session): void
    {
        $limit = new Timeout(CancellationLimit::SECONDS);
        try {
            try {
                $session->settle(new Timeout(self::MAX_SETTLE_SECONDS));
            } catch (CancelledException) {
                $session->stop();
                $session->settle($limit);
            }
            if (!$session->discardUnsentBegin() && $session->isOpen() && $session->transactionStatus() !== 'I') {
                $session->query('ROLLBACK', [], $limit);
                if ($session->transactionStatus() !== 'I') {
                    // ROLLBACK did not end the transaction, so only closing the session ends the transaction.
                    $session->close();
                }
            }
        } catch (\Throwable) {
            $session->close();
        }
    }
}
