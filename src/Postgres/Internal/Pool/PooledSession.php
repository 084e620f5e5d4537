<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\Native\NativeSession;
use Spindle\Postgres\Internal\Session;

/** A session of a pool, with its borrowers and its load. */
final class PooledSession
{
    /** Maximum of queries that share a session. */
    public const MAX_SHARING = 1_024;

    /** Maximum of queries that share a session while other sessions are available. */
    private const MAX_AVOIDABLE_SHARING = 64;

    /** Nanoseconds that a query may wait for those ahead of it on a session, while it could have another session. */
    private const SHORT_WAIT_NANOSECONDS = 1_000_000;

    /** Nanoseconds between two checks of a session. */
    public const CHECK_NANOSECONDS = 10_000_000;

    /** Checks in a row without a byte from the server, after which no further query joins the session. */
    private const MAX_IDLE_CHECKS = 2;

    /** Checks without a byte after which the query ahead is first postponed, and how often that number may double. */
    private const POSTPONE_AFTER_CHECKS = 20;
    private const MAX_DOUBLINGS = 16;

    /** Current borrowers: one that has the session alone, or the queries that share it. */
    public int $borrowers = 0;

    /** Nanoseconds that the server usually needs for these queries. */
    public int $load = 0;

    /** Whether the session is exclusive: one borrower has it alone, or it is being reset or tested. */
    public bool $isExclusive = false;

    /** Whether the session must be reset when the queries that share it are done. */
    public bool $needsReset = false;

    /**
     * Whether no further query may share it, because a borrower will get it alone. Only {@see PooledSessions} writes
     * it.
     */
    public bool $reserved = false;

    /** Checks in a row without a byte from the server while several queries shared the session. */
    public int $idleChecks = 0;

    /** Number of queries that were postponed since the session was last free. */
    private int $postponed = 0;

    /** Time of the last byte as of the last check: hrtime. */
    private int $lastSeen = 0;

    /** The same session, if queries can be sent on it without waiting for answers. */
    public readonly ?NativeSession $native;

    /** Checks in which nothing can arrive because the round trip takes that long. */
    private int $roundTripChecks = 0;

    /** Maximum of {@see $load} while other sessions are available. */
    private int $maxLoad = self::SHORT_WAIT_NANOSECONDS;

    /** @param int $expiresAt when the session is to be replaced: hrtime */
    public function __construct(public readonly Session $session, public readonly int $expiresAt)
    {
        $this->native = $session instanceof NativeSession ? $session : null;
    }

    public function isShareable(): bool
    {
        return !$this->isExclusive
            && !$this->reserved
            && $this->borrowers < self::MAX_SHARING
            && $this->idleChecks < self::MAX_IDLE_CHECKS + $this->roundTripChecks;
    }

    /**
     * Whether one more query may share the session, and is answered soon.
     *
     * @param int $cost nanoseconds that the query usually takes
     */
    public function answersSoon(int $cost): bool
    {
        return !$this->isExclusive && !$this->reserved && ($this->borrowers === 0
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
            $this->idleChecks = $this->postponed = 0;
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

    /** Ends sharing: no further query joins, and the session is reset when the current ones are done. */
    public function markForReset(): void
    {
        $this->isExclusive = $this->needsReset = true;
    }

    /**
     * Checks whether the server sent anything since the last check, while several queries share the session.
     *
     * @return bool whether the query ahead is to be postponed. Once each of the queries has been, the time until the
     *              next one is doubled: all of them may be slow.
     */
    public function checkStall(): bool
    {
        $lastSeen = $this->session->lastActivity();
        $this->idleChecks = $lastSeen === $this->lastSeen && $this->borrowers > 1 ? $this->idleChecks + 1 : 0;
        $this->lastSeen = $lastSeen;
        // With a round trip longer than that, a query may have others ahead of it at no extra cost.
        $roundTrip = $this->native?->roundTrip() ?? 0;
        $this->maxLoad = max(self::SHORT_WAIT_NANOSECONDS, $roundTrip);
        $this->roundTripChecks = intdiv($roundTrip, self::CHECK_NANOSECONDS);
        $checksUntilPostponed = (self::POSTPONE_AFTER_CHECKS + $this->roundTripChecks) << min(
            intdiv($this->postponed, max(1, $this->borrowers)),
            self::MAX_DOUBLINGS,
        );
        $mustPostpone = $this->idleChecks > 0 && $this->idleChecks % $checksUntilPostponed === 0;
        $this->postponed += $mustPostpone ? 1 : 0;

        return $mustPostpone;
    }
}
