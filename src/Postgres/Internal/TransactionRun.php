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
use function Amp\delay;

/** Runs a function in a transaction, or in a savepoint. */
final class TransactionRun
{
    /** Seconds for pending rows when a stream is left, before the statement is stopped and its transaction undone. */
    private const FETCH_TIMEOUT = 0.1;

    /** Seconds for a ROLLBACK. If the server hangs, the connection is closed, which rolls back too. */
    private const ROLLBACK_TIMEOUT = 5.0;

    /**
     * @template T
     *
     * @param SessionLender                   $lender provides sessions without a transaction
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
        for ($attempt = 1;; ++$attempt) {
            $session = self::take($lender, $cancellation);
            try {
                return self::attempt($lender, $session, $work, $isolation, $cancellation);
            } catch (DeadlockException|SerializationFailureException $failure) {
                if ($attempt > $retries) {
                    throw $failure;
                }
            } finally {
                self::giveBack($lender, $session, 'ROLLBACK');
            }
            $pause ??= new Backoff(delay: 0.01, factor: 2.0, maxDelay: 1.0, jitter: 0.5);
            delay($pause->after($attempt), cancellation: $cancellation);
        }
    }

    /**
     * Yields the rows of a statement in its own transaction, which is committed after the last row or when the loop is
     * left.
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
        $session = self::take($lender, $cancellation);
        try {
            $session->begin('BEGIN', $cancellation);
            yield from $session->stream($sql, $parameters, $cancellation);
            self::commit($session, $lender, $cancellation);
        } catch (\Throwable $failure) {
            self::rollBack($session);
            throw $failure;
        } finally {
            self::giveBack($lender, $session, 'COMMIT');
        }
    }

    /**
     * @template T
     *
     * @param \Closure(Transaction): T $work
     *
     * @return T
     */
    public static function nested(SessionLender $lender, int $depth, \Closure $work, ?Cancellation $cancellation): mixed
    {
        $name = "spindle_{$depth}";
        $session = $lender->take($cancellation);
        $held = new ConnectionSession($session, isTransaction: true);
        $isSet = $isOver = false;
        try {
            // A cancelled SAVEPOINT would leave nothing to roll back to, and the outer transaction would be lost.
            $session->query("SAVEPOINT {$name}");
            $isSet = true;
            $cancellation?->throwIfRequested();
            $result = $work(new Transaction($held, $depth));
            $held->finish();
            $held->ensureNotEnded();
            $session->settle();
            if ($session->isOpen() && $session->transactionStatus() === 'E') {
                throw TransactionAbortedException::atCommit();
            }
            $cancellation?->throwIfRequested();
            // A cancellation would leave open whether the savepoint was released.
            $session->query("RELEASE SAVEPOINT {$name}");
            $isOver = true;

            return $result;
        } catch (\Throwable $failure) {
            self::finishFailed($held);
            if ($isSet) {
                self::rollBackTo($session, $name);
            }
            $isOver = true;
            throw $failure;
        } finally {
            $held->end();
            if ($held->isEnded && $lender instanceof ConnectionSession) {
                $lender->isEnded = true;
            }
            if ($isOver || !$isSet) {
                $lender->give($session);
            } else {
                // The fiber is being destroyed, so nothing may suspend here.
                $lender->handOver($session);
                async(static function () use ($lender, $session, $name): void {
                    self::rollBackTo($session, $name);
                    $lender->give($session);
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
        $held = new ConnectionSession($session, isTransaction: true);
        try {
            $session->begin(
                'BEGIN' . ($isolation === null ? '' : " ISOLATION LEVEL {$isolation->value}"),
                $cancellation,
            );
            $result = $work(new Transaction($held, 0));
            $held->finish();
            $held->ensureNotEnded();
            $cancellation?->throwIfRequested();
            $session->settle();
            self::commit($session, $lender, $cancellation);

            return $result;
        } catch (\Throwable $failure) {
            self::finishFailed($held);
            self::rollBack($session);
            throw $failure;
        } finally {
            $held->end();
        }
    }

    private static function take(SessionLender $lender, ?Cancellation $cancellation): Session
    {
        $session = $lender->take($cancellation);
        if ($session->isOpen() && $session->inFlight() === 0 && $session->transactionStatus() !== 'I') {
            $lender->give($session);
            throw new \LogicException(
                'A statement has begun a transaction on this connection, which this one would end. '
                    . 'End it first, or use transaction() for both',
            );
        }

        return $session;
    }

    private static function finishFailed(ConnectionSession $held): void
    {
        try {
            $held->finish();
        } catch (\LogicException) {
            // The function has failed, so a COPY that is still open is no second error.
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
     * Gives a session back. If its transaction is still open, the loop was left or the fiber is being destroyed. Then
     * nothing may suspend here, so another fiber ends the transaction first.
     *
     * @param string $end COMMIT or ROLLBACK
     */
    private static function giveBack(SessionLender $lender, Session $session, string $end): void
    {
        if (
            !$session->hasBegun()
            || $session->inFlight() === 0 && $session->transactionStatus() === 'I'
            || !$session->isOpen()
        ) {
            $lender->give($session);
        } else {
            $lender->handOver($session);
            async(self::endInBackground(...), $lender, $session, $end)->ignore();
        }
    }

    private static function endInBackground(SessionLender $lender, Session $session, string $end): void
    {
        try {
            try {
                $session->settle(new TimeoutCancellation(self::FETCH_TIMEOUT));
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
        $lender->give($session);
    }

    /** Commits. A cancellation does not stop the server. It limits the wait for the answer. */
    private static function commit(Session $session, SessionLender $lender, ?Cancellation $cancellation): void
    {
        if (!$session->hasBegun() && $session->isOpen()) {
            return;
        }
        if ($session->transactionStatus() === 'E') {
            throw TransactionAbortedException::atCommit();
        }
        if ($session->isOpen() && $session->transactionStatus() === 'I') {
            throw ConnectionSession::ended();
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

    /** Rolls back. If that fails, the connection is closed, which ends the transaction too. */
    private static function rollBack(Session $session): void
    {
        try {
            $session->settle();
            if ($session->hasBegun() && $session->isOpen() && $session->transactionStatus() !== 'I') {
                $session->query('ROLLBACK', [], new TimeoutCancellation(self::ROLLBACK_TIMEOUT));
                if ($session->transactionStatus() !== 'I') {
                    // A server that reports a transaction after ROLLBACK does not support transactions.
                    $session->close();
                }
            }
        } catch (\Throwable) {
            $session->close();
        }
    }
}
