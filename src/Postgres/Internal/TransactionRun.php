<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\TimeoutCancellation;
use Spindle\Internal\Backoff;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\DeadlockException;
use Spindle\Postgres\Isolation;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\SerializationFailureException;
use Spindle\Postgres\Transaction;
use Spindle\Postgres\TransactionAbortedException;

use function Amp\async;

/** Runs a function in a transaction or in a savepoint, and streams rows in a transaction. */
final class TransactionRun
{
    /** Maximum seconds to discard the rows of a stream in the background. After that, the statement is cancelled. */
    private const DISCARD_ROWS_TIMEOUT = 0.1;

    /** Maximum seconds of a ROLLBACK. After that, the connection is closed, which also rolls back. */
    private const ROLLBACK_TIMEOUT = 5.0;

    /**
     * Runs a function in a transaction. After a deadlock or serialization failure, repeats it in another transaction.
     *
     * @template T
     *
     * @param SessionLender $lender lends sessions that have no open transaction
     * @param \Closure(Transaction): T $work
     *
     * @return T
     */
    public static function outermost(
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
        $session = self::withoutTransaction($lender->acquire($cancellation), $lender);
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
                $session = self::withoutTransaction(
                    $lender->acquireAgain($released, $pause->after($attempt), $cancellation),
                    $lender,
                );
            }
        } finally {
            if ($session !== null) {
                self::release($lender, $session, 'ROLLBACK');
            }
        }
    }

    /**
     * Runs a statement in its own transaction, and yields its rows. Commits after the last row, or when the caller ends
     * its loop earlier.
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
        $session = self::withoutTransaction($lender->acquire($cancellation), $lender);
        try {
            $session->begin('BEGIN', $cancellation);
            yield from $session->stream($sql, $parameters, $cancellation);
            self::commit($session, $lender, $cancellation);
        } catch (\Throwable $failure) {
            self::rollBack($session);
            throw $failure;
        } finally {
            self::release($lender, $session, 'COMMIT');
        }
    }

    /**
     * @template T
     *
     * @param int $depth number of enclosing transactions
     * @param \Closure(Transaction): T $work
     *
     * @return T
     */
    public static function nested(SessionLender $lender, int $depth, \Closure $work, ?Cancellation $cancellation): mixed
    {
        $name = "spindle_{$depth}";
        $session = $lender->acquire($cancellation);
        $transactionSession = new ConnectionSession($session, isTransaction: true, warn: $lender->warn(...));
        $hasSavepoint = $isOver = false;
        try {
            // SAVEPOINT is sent without the cancellation: a stopped SAVEPOINT would make the whole transaction fail.
            $session->query("SAVEPOINT {$name}");
            $hasSavepoint = true;
            $cancellation?->throwIfRequested();
            $result = $work(new Transaction($transactionSession, $depth));
            $transactionSession->awaitCallsAndEndUse();
            $transactionSession->ensureTransactionNotEnded();
            $session->settle();
            if ($session->isOpen() && $session->transactionStatus() === 'E') {
                throw TransactionAbortedException::atCommit();
            }
            $cancellation?->throwIfRequested();
            // RELEASE is sent without the cancellation: a stopped RELEASE leaves open whether the savepoint exists.
            $session->query("RELEASE SAVEPOINT {$name}");
            $isOver = true;

            return $result;
        } catch (\Throwable $failure) {
            self::endUseAfterFailure($transactionSession);
            if ($hasSavepoint) {
                self::rollBackTo($session, $name);
            }
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
                    self::rollBackTo($session, $name);
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
            $transactionSession->awaitCallsAndEndUse();
            $transactionSession->ensureTransactionNotEnded();
            $cancellation?->throwIfRequested();
            $session->settle();
            self::commit($session, $lender, $cancellation);

            return $result;
        } catch (\Throwable $failure) {
            self::endUseAfterFailure($transactionSession);
            self::rollBack($session);
            throw $failure;
        } finally {
            $transactionSession->endUse();
        }
    }

    /** Returns the session. If it has an open transaction, releases the session and throws a \LogicException. */
    private static function withoutTransaction(Session $session, SessionLender $lender): Session
    {
        if ($session->isOpen() && $session->inFlight() === 0 && $session->transactionStatus() !== 'I') {
            $lender->release($session);
            throw new \LogicException(
                'A statement has begun a transaction on this connection, so transaction() can not begin another. '
                    . 'End that transaction first, or use transaction() for it, too',
            );
        }

        return $session;
    }

    private static function endUseAfterFailure(ConnectionSession $transactionSession): void
    {
        try {
            $transactionSession->awaitCallsAndEndUse();
        } catch (\LogicException) {
            // The function has failed already, so a COPY that is still open is not reported.
            return;
        }
    }

    /** Rolls back to a savepoint. If that fails, the outer transaction fails too. */
    private static function rollBackTo(Session $session, string $name): void
    {
        try {
            $session->settle();
            if ($session->isOpen()) {
                $session->query("ROLLBACK TO SAVEPOINT {$name}", [], new TimeoutCancellation(self::ROLLBACK_TIMEOUT));
                $session->query("RELEASE SAVEPOINT {$name}");
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
        if (
            $session->discardUnsentBegin()
            || $session->inFlight() === 0 && $session->transactionStatus() === 'I'
            || !$session->isOpen()
        ) {
            $lender->release($session);
        } else {
            $lender->detachFromFiber($session);
            async(self::endInBackground(...), $lender, $session, $end)->ignore();
        }
    }

    private static function endInBackground(SessionLender $lender, Session $session, string $end): void
    {
        try {
            try {
                $session->settle(new TimeoutCancellation(self::DISCARD_ROWS_TIMEOUT));
            } catch (CancelledException) {
                $session->stop();
                $session->settle();
            }
            if ($session->isOpen()) {
                $end === 'COMMIT' && $session->transactionStatus() === 'T'
                    ? PendingCommit::await($session, $lender->warn(...), null)
                    : $session->query('ROLLBACK', [], new TimeoutCancellation(self::ROLLBACK_TIMEOUT));
            }
        } catch (\Throwable) {
            $session->close();
        }
        $lender->release($session);
    }

    /** Commits. A cancellation limits the wait for the answer, but does not stop the COMMIT on the server. */
    private static function commit(Session $session, SessionLender $lender, ?Cancellation $cancellation): void
    {
        if ($session->discardUnsentBegin() && $session->isOpen()) {
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
            throw $wasOpen ? ConnectionLostException::committing($loss) : $loss;
        }
        if ($session->commandTag() !== 'COMMIT') {
            throw TransactionAbortedException::atCommit();
        }
    }

    /** Rolls back. If that fails, the connection is closed, which also ends the transaction. */
    private static function rollBack(Session $session): void
    {
        try {
            $session->settle();
            if (!$session->discardUnsentBegin() && $session->isOpen() && $session->transactionStatus() !== 'I') {
                $session->query('ROLLBACK', [], new TimeoutCancellation(self::ROLLBACK_TIMEOUT));
                if ($session->transactionStatus() !== 'I') {
                    // If ROLLBACK did not end the transaction, only closing the connection ends it.
                    $session->close();
                }
            }
        } catch (\Throwable) {
            $session->close();
        }
    }
}
