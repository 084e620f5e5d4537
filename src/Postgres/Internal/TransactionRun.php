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
    /** Seconds for rows that are under way when a stream is left; then they are stopped, which rolls the transaction back. */
    private const FETCH_ENDS_WITHIN = 0.1;

    /**
     * @template T
     *
     * @param Lender                   $lender of sessions without a transaction
     * @param \Closure(Transaction): T $work
     *
     * @return T
     */
    public static function outermost(Lender $lender, \Closure $work, ?Isolation $isolation, int $retries, ?Cancellation $cancellation): mixed
    {
        if ($retries < 0) {
            throw new \ValueError("The number of retries is {$retries}; give 0 or more");
        }
        $pause = null;
        for ($attempt = 1;; ++$attempt) {
            $session = self::take($lender, $cancellation);
            try {
                return self::once($session, $work, $isolation, $cancellation);
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
     * The rows of a statement in a transaction of its own, which is committed when they are read or left.
     *
     * @param list<mixed> $parameters
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public static function stream(Lender $lender, string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): \Generator
    {
        $session = self::take($lender, $cancellation);
        try {
            $session->begin('BEGIN', $cancellation);
            yield from $session->stream($sql, $parameters, $cancellation);
            self::commit($session);
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
    public static function nested(Lender $lender, int $depth, \Closure $work, ?Cancellation $cancellation): mixed
    {
        $name = "spindle_{$depth}";
        $session = $lender->take($cancellation);
        $held = new OnlySession($session, isTransaction: true);
        $isSet = $isOver = false;
        try {
            $session->query("SAVEPOINT {$name}", [], $cancellation);
            $isSet = true;
            $result = $work(new Transaction($held, $depth));
            $held->finish();
            $held->ensureNotEnded();
            $session->settle();
            if ($session->isOpen() && $session->transactionStatus() === 'E') {
                throw TransactionAbortedException::atCommit();
            }
            $session->query("RELEASE SAVEPOINT {$name}", [], $cancellation);
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
            if ($held->isEnded && $lender instanceof OnlySession) {
                $lender->isEnded = true;
            }
            if ($isOver || !$isSet) {
                $lender->give($session);
            } else {
                // The fiber was destroyed, in which nothing may suspend.
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
    private static function once(Session $session, \Closure $work, ?Isolation $isolation, ?Cancellation $cancellation): mixed
    {
        $held = new OnlySession($session, isTransaction: true);
        try {
            $session->begin('BEGIN' . ($isolation === null ? '' : " ISOLATION LEVEL {$isolation->value}"), $cancellation);
            $result = $work(new Transaction($held, 0));
            $held->finish();
            $held->ensureNotEnded();
            $cancellation?->throwIfRequested();
            $session->settle();
            self::commit($session);

            return $result;
        } catch (\Throwable $failure) {
            self::finishFailed($held);
            self::rollBack($session);
            throw $failure;
        } finally {
            $held->end();
        }
    }

    private static function take(Lender $lender, ?Cancellation $cancellation): Session
    {
        $session = $lender->take($cancellation);
        if ($session->isOpen() && $session->inFlight() === 0 && $session->transactionStatus() !== 'I') {
            $lender->give($session);
            throw new \LogicException('A transaction is open that a statement began: it would be ended with this one. Use transaction() for that one too, or end it first');
        }

        return $session;
    }

    private static function finishFailed(OnlySession $held): void
    {
        try {
            $held->finish();
        } catch (\LogicException) {
            // That it has a COPY open is no surprise where a function has failed.
            return;
        }
    }

    /** Where that fails so will the transaction around it. */
    private static function rollBackTo(Session $session, string $name): void
    {
        try {
            $session->settle();
            if ($session->isOpen()) {
                $session->query("ROLLBACK TO SAVEPOINT {$name}");
                $session->query("RELEASE SAVEPOINT {$name}");
            }
        } catch (PostgresException) {
            return;
        }
    }

    /**
     * At once, unless a transaction is open: then its loop was left, or its fiber destroyed. Where that happens nothing may suspend.
     *
     * @param string $end COMMIT or ROLLBACK
     */
    private static function giveBack(Lender $lender, Session $session, string $end): void
    {
        if (!$session->hasBegun() || $session->inFlight() === 0 && $session->transactionStatus() === 'I' || !$session->isOpen()) {
            $lender->give($session);
        } else {
            $lender->handOver($session);
            async(self::leave(...), $lender, $session, $end)->ignore();
        }
    }

    private static function leave(Lender $lender, Session $session, string $end): void
    {
        try {
            try {
                $session->settle(new TimeoutCancellation(self::FETCH_ENDS_WITHIN));
            } catch (CancelledException) {
                $session->stop();
                $session->settle();
            }
            if ($session->isOpen()) {
                $session->query($session->transactionStatus() === 'T' ? $end : 'ROLLBACK');
            }
        } catch (\Throwable) {
            $session->close();
        }
        $lender->give($session);
    }

    /** Not to be cancelled: nobody could tell afterwards whether it was done. */
    private static function commit(Session $session): void
    {
        if (!$session->hasBegun() && $session->isOpen()) {
            return;
        }
        if ($session->transactionStatus() === 'E') {
            throw TransactionAbortedException::atCommit();
        }
        if ($session->isOpen() && $session->transactionStatus() === 'I') {
            throw OnlySession::ended();
        }
        $wasOpen = $session->isOpen();
        try {
            $session->query('COMMIT');
        } catch (ConnectionLostException|ConnectionClosedException $loss) {
            throw $wasOpen ? ConnectionLostException::committing($loss) : $loss;
        }
        if ($session->commandTag() !== 'COMMIT') {
            throw TransactionAbortedException::atCommit();
        }
    }

    /** Where that fails the connection is no more, and with it the transaction. */
    private static function rollBack(Session $session): void
    {
        try {
            $session->settle();
            if ($session->hasBegun() && $session->isOpen() && $session->transactionStatus() !== 'I') {
                $session->query('ROLLBACK');
                if ($session->transactionStatus() !== 'I') {
                    // Whatever answers so knows nothing of transactions.
                    $session->close();
                }
            }
        } catch (\Throwable) {
            $session->close();
        }
    }
}
