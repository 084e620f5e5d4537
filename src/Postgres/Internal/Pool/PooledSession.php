<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Revolt\EventLoop;
use Spindle\Postgres\Internal\Protocol\PipelinedSession;

/** A session of a pool, with the state that decides which queries may use the session. */
final class PooledSession
{
    public const MAX_SHARING = 1_024;

    /** Maximum number of queries that share a session if another session can be used instead. */
    private const MAX_AVOIDABLE_SHARING = 64;

    /** Smallest value of {@see $maxLoad}, in nanoseconds. A longer round trip raises the value. */
    private const MAX_AVOIDABLE_WAIT_NANOSECONDS = 1_000_000;

    /** Interval at which the pool calls {@see checkStall()} while queries share a session, in nanoseconds. */
    public const CHECK_NANOSECONDS = 10_000_000;

    /** No further query may share the session if {@see $idleChecks} exceeds {@see $roundTripChecks} by this number. */
    private const MAX_IDLE_CHECKS = 2;

    /** The first postponement happens when {@see $idleChecks} exceeds {@see $roundTripChecks} by this number. */
    private const POSTPONE_AFTER_CHECKS = 20;

    /** The time until the next postponement doubles at most this many times. */
    private const MAX_POSTPONE_DOUBLINGS = 16;

    private const PING_TIMEOUT = 1.0;

    private const RESET_TIMEOUT = 5.0;

    /** Number of queries that share the session, or 1 for an exclusive borrower. */
    public int $borrowers = 0;

    /** Nanoseconds that the server usually needs for the queries of all current borrowers. */
    public int $load = 0;

    /** Whether no further query may use the session, because of an exclusive borrower, a ping or a necessary reset. */
    public bool $isExclusive = false;

    public bool $needsReset = false;

    /** Whether no further query may share the session, so that it becomes free for an exclusive borrower. */
    public bool $isReserved = false;

    /** Number of consecutive checks without a new byte from the server, while several queries shared the session. */
    public int $idleChecks = 0;

    /** Number of postponements since the session was last free. */
    private int $postponedCount = 0;

    /** The pipeline's lastReceived at the last check; 0 before the first check of the current queries. */
    private int $lastSeen = 0;

    /** Number of checks during one round trip. In that time, the answer to a new query can't arrive yet. */
    private int $roundTripChecks = 0;

    /** A further query that would raise {@see $load} above this number uses another session if possible. */
    private int $maxLoad = self::MAX_AVOIDABLE_WAIT_NANOSECONDS;

    /** @param int $expiresAt end of the session's lifetime, in nanoseconds of hrtime() */
    public function __construct(public readonly PipelinedSession $session, public readonly int $expiresAt) {}

    public function isShareable(): bool
    {
        return !$this->isExclusive
            && !$this->isReserved
            && $this->borrowers < self::MAX_SHARING
            && $this->idleChecks < self::MAX_IDLE_CHECKS + $this->roundTripChecks;
    }

    /** Returns whether a further query of about `$cost` nanoseconds may use the session and would be answered soon. */
    public function answersSoon(int $cost): bool
    {
        return !$this->isExclusive && !$this->isReserved && ($this->borrowers === 0
            || $this->borrowers < self::MAX_AVOIDABLE_SHARING
            && $this->load + $cost <= $this->maxLoad
            && $this->idleChecks < self::MAX_IDLE_CHECKS + $this->roundTripChecks);
    }

    public function isFree(): bool
    {
        return !$this->isExclusive && $this->borrowers === 0;
    }

    /** Returns whether the session can't be used until the server confirms a cancellation, a ping or a reset. */
    public function isUnconfirmed(): bool
    {
        return $this->session->pipeline->cancelling->blocksSending || $this->isExclusive && $this->borrowers === 0;
    }

    public function lend(bool $exclusive, int $cost): void
    {
        if ($this->borrowers === 0) {
            $this->idleChecks = $this->postponedCount = $this->lastSeen = 0;
        }
        ++$this->borrowers;
        $this->load += $cost;
        $this->isExclusive = $exclusive;
    }

    public function takeBack(int $cost): void
    {
        --$this->borrowers;
        $this->load -= $cost;
        if ($this->borrowers === 0 && !$this->needsReset) {
            $this->isExclusive = false;
        }
    }

    /** Lets no further query use the session. The pool resets the session when its current queries are done. */
    public function markForReset(): void
    {
        $this->isExclusive = $this->needsReset = true;
    }

    public function idleSeconds(): float
    {
        return (hrtime(true) - $this->session->pipeline->lastReceived) / 1e9;
    }

    /** Pings the session. Closes it if no answer arrives within `$maxSeconds`, or within one second if that is less. */
    public function ping(float $maxSeconds): void
    {
        $loop = EventLoop::getDriver();
        $timer = $loop->delay(min($maxSeconds, self::PING_TIMEOUT), fn() => $this->session->close());
        try {
            $this->session->ping();
        } catch (\Throwable) {
            $this->session->close();
        }
        $loop->cancel($timer);
    }

    /**
     * Waits for statements in flight, and brings the session into its initial state. Closes the session if that fails,
     * or if the server needs more than five seconds for the reset itself.
     *
     * @return bool whether a transaction was open
     */
    public function reset(): bool
    {
        $wasInTransaction = false;
        $loop = EventLoop::getDriver();
        $timer = '';
        try {
            $this->session->settle();
            $wasInTransaction = $this->session->isOpen() && $this->session->transactionStatus() !== 'I';
            $timer = $loop->delay(self::RESET_TIMEOUT, fn() => $this->session->close());
            $this->session->reset();
        } catch (\Throwable) {
            $this->session->close();
        }
        $loop->cancel($timer);
        $this->isExclusive = $this->needsReset = false;

        return $wasInTransaction;
    }

    /**
     * Checks whether the server sent anything since the last check, while several queries share the session.
     *
     * @return bool whether the pool must postpone the query that the server is running. If all queries are slow,
     *     postponing does not help. So after every {@see $borrowers} postponements, the time until the next one doubles
     */
    public function checkStall(): bool
    {
        $lastSeen = $this->session->pipeline->lastReceived;
        $this->idleChecks = $lastSeen === $this->lastSeen && $this->borrowers > 1 ? $this->idleChecks + 1 : 0;
        $this->lastSeen = $lastSeen;
        // A query takes at least one round trip. So if the earlier queries need up to one round trip, the time of the
        // query at most doubles.
        $roundTrip = $this->session->pipeline->serverTime->roundTrip;
        $this->maxLoad = max(self::MAX_AVOIDABLE_WAIT_NANOSECONDS, $roundTrip);
        $this->roundTripChecks = intdiv($roundTrip, self::CHECK_NANOSECONDS);
        $checksUntilPostponed = (self::POSTPONE_AFTER_CHECKS + $this->roundTripChecks) << min(
            intdiv($this->postponedCount, max(1, $this->borrowers)),
            self::MAX_POSTPONE_DOUBLINGS,
        );
        $mustPostpone = $this->idleChecks > 0 && $this->idleChecks % $checksUntilPostponed === 0;
        $this->postponedCount += $mustPostpone ? 1 : 0;

        return $mustPostpone;
    }
}
