<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\Native\NativeSession;
use Spindle\Postgres\Internal\Session;

/** A session of a pool. */
final class Member
{
    /** Queries that share a session at most. */
    public const MOST_SHARING = 1_024;

    /** Queries that share a session at most while there are others. */
    private const CROWDED = 64;

    /** Nanoseconds for which a query may wait for those ahead of it on the same session while it could have another. */
    private const SOON = 1_000_000;

    /** Nanoseconds between looks at it. */
    public const LOOK_EACH = 10_000_000;

    /** Looks at it in a row between which nothing came, from which on the server is taken to be at something slow. */
    private const STILL = 2;

    /** Such looks after which the query ahead gives way for the first time, and how often that number may double. */
    private const MOST_STILL = 20;
    private const MOST_DOUBLINGS = 16;

    /** Borrowers that use it now: one alone, or queries that share it. */
    public int $borrowers = 0;

    /** Nanoseconds that the server usually needs for these queries. */
    public int $load = 0;

    /** Whether it is exclusive: one borrower has it alone, or it is being reset. */
    public bool $alone = false;

    /** Whether it must be reset when the queries that share it are done. */
    public bool $spoiled = false;

    /** Whether no further query may share it, because a borrower is to have it alone. Only {@see Members} changes it. */
    public bool $reserved = false;

    /** Looks at it in a row between which nothing came, while several shared it. */
    public int $still = 0;

    /** How often a query gave way since it was free. */
    private int $postponed = 0;

    /** When something came last, at the last look: hrtime. */
    private int $seen = 0;

    /** The same session, if it can be sent queries ahead. */
    public readonly ?NativeSession $native;

    /** Looks during which nothing can come, since a round trip takes that long. */
    private int $trip = 0;

    /** How much {@see $load} it has at most while there are others. */
    private int $soon = self::SOON;

    /** @param int $until when it is to be replaced: hrtime */
    public function __construct(public readonly Session $session, public readonly int $until)
    {
        $this->native = $session instanceof NativeSession ? $session : null;
    }

    /** Whether one more query may share it. */
    public function isShareable(): bool
    {
        return !$this->alone && !$this->reserved && $this->borrowers < self::MOST_SHARING && $this->still < self::STILL + $this->trip;
    }

    /**
     * Whether one more query may share it, and is answered soon.
     *
     * @param int $cost nanoseconds that it usually takes
     */
    public function answersSoon(int $cost): bool
    {
        return !$this->alone && !$this->reserved && ($this->borrowers === 0
            || $this->borrowers < self::CROWDED && $this->load + $cost <= $this->soon && $this->still < self::STILL + $this->trip);
    }

    public function isFree(): bool
    {
        return !$this->alone && $this->borrowers === 0;
    }

    public function lend(bool $alone, int $cost): void
    {
        if ($this->borrowers === 0) {
            $this->still = $this->postponed = 0;
        }
        ++$this->borrowers;
        $this->load += $cost;
        $this->alone = $alone;
    }

    public function takeBack(int $cost): void
    {
        --$this->borrowers;
        $this->load -= $cost;
        if ($this->borrowers === 0 && !$this->spoiled) {
            $this->alone = false;
        }
    }

    /** Ends sharing: no query joins it any more, and it is reset when those that share it are done. */
    public function spoil(): void
    {
        $this->alone = $this->spoiled = true;
    }

    /**
     * Looks whether anything came since the last look, while several share it.
     *
     * @return bool whether the query ahead is to give way. Once all of them have, each gets twice the time: they may all be slow.
     */
    public function look(): bool
    {
        $seen = $this->session->lastActivity();
        $this->still = $seen === $this->seen && $this->borrowers > 1 ? $this->still + 1 : 0;
        $this->seen = $seen;
        // Where a round trip takes longer than that, a query may as well have others ahead of it.
        $roundTrip = $this->native?->roundTrip() ?? 0;
        $this->soon = max(self::SOON, $roundTrip);
        $this->trip = intdiv($roundTrip, self::LOOK_EACH);
        $patience = (self::MOST_STILL + $this->trip) << min(intdiv($this->postponed, max(1, $this->borrowers)), self::MOST_DOUBLINGS);
        $isToGiveWay = $this->still > 0 && $this->still % $patience === 0;
        $this->postponed += $isToGiveWay ? 1 : 0;

        return $isToGiveWay;
    }
}
