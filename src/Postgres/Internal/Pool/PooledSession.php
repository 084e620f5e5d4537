<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\Native\NativeSession;
use Spindle\Postgres\Internal\Session;

/** A session of a pool, with its borrowers and its load. */
final class PooledSession
{
    /** Maximum number of queries that share a session. */
    public const MAX_SHARING = 1_024;

    /** Maximum number of queries that share a session while another session could be used. */
    private const MAX_AVOIDABLE_SHARING = 64;

    /** Maximum nanoseconds that a query may wait for earlier queries of its session while another could be used. */
    private const MAX_AVOIDABLE_WAIT_NANOSECONDS = 1_000_000;

    /** Nanoseconds between two checks for stalled queries ({@see checkStall()}). */
    public const CHECK_NANOSECONDS = 10_000_000;

    /** Consecutive checks without a byte from the server after which no further query may share the session. */
    private const MAX_IDLE_CHECKS = 2;

    /** Consecutive checks without a byte after which the running query is postponed for the first time. */
    private const POSTPONE_AFTER_CHECKS = 20;

    /** How often {@see POSTPONE_AFTER_CHECKS} may double. */
    private const MAX_POSTPONE_DOUBLINGS = 16;

    /** Number of current borrowers: 1 for an exclusive session, else the number of queries that share it. */
    public int $borrowers = 0;

    /** Nanoseconds that the server usually needs for the queries of all current borrowers. */
    public int $load = 0;

    /** Whether no further query may use the session: one borrower has it, it is pinged, or it must be reset. */
    public bool $isExclusive = false;

    /** Whether the session must be reset when the queries that share it are done. */
    public bool $needsReset = false;

    /** Whether no further query may share the session, as a borrower waits for it. Set by {@see PooledSessions}. */
    public bool $isReserved = false;

    /** Consecutive checks without a byte from the server while several queries shared the session. */
    public int $idleChecks = 0;

    /** Number of queries that were postponed since the session was last free. */
    private int $postponedCount = 0;

    /** When the server had sent its last byte as of the last check, by hrtime(). */
    private int $lastSeen = 0;

    /** The same session if it supports pipelining; null otherwise. */
    public readonly ?NativeSession $native;

    /** Number of checks during one round trip, in which no answer can arrive. */
    private int $roundTripChecks = 0;

    /** Maximum of {@see $load} up to which a further query may share the session while another could be used. */
    private int $maxLoad = self::MAX_AVOIDABLE_WAIT_NANOSECONDS;

    /** @param int $expiresAt when the session is to be replaced, by hrtime() */
    public function __construct(public readonly Session $session, public readonly int $expiresAt)
    {
        $this->native = $session instanceof NativeSession ? $session : null;
    }

    public function isShareable(): bool
    {
        return !$this->isExclusive
            && !$this->isReserved
            && $this->borrowers < self::MAX_SHARING
            && $this->idleChecks < self::MAX_IDLE_CHECKS + $this->roundTripChecks;
    }

    /** Whether one more query, which usually takes `$cost` nanoseconds, may use the session and is answered soon. */
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

    public function lend(bool $exclusive, int $cost): void
    {
        if ($this->borrowers === 0) {
            $this->idleChecks = $this->postponedCount = 0;
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

    /** Ends sharing: no further query may use the session, and it is reset when its current queries are done. */
    public function markForReset(): void
    {
        $this->isExclusive = $this->needsReset = true;
    }

    /**
     * Checks whether the server sent anything since the last check, while several queries share the session.
     *
     * @return bool whether the pool must postpone the query that the server is running. Once each of the queries has
     *     been postponed, the time until the next postponement doubles, because all of the queries may be slow.
     */
    public function checkStall(): bool
    {
        $lastSeen = $this->session->lastActivity();
        $this->idleChecks = $lastSeen === $this->lastSeen && $this->borrowers > 1 ? $this->idleChecks + 1 : 0;
        $this->lastSeen = $lastSeen;
        // A wait of up to one round trip is acceptable, because it at most doubles the time of the query.
        $roundTrip = $this->native?->roundTrip() ?? 0;
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
