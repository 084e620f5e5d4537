<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\ConnectionClosedException;

/** The open sessions of a pool. Chooses the session for the next borrower. */
final class PooledSessions
{
    /** @var list<PooledSession> */
    public array $all = [];

    public int $reservedCount = 0;

    private ?PooledSession $lastShared = null;

    /** @return list<PooledSession> */
    public function free(): array
    {
        return array_values(array_filter($this->all, static fn(PooledSession $pooled): bool => $pooled->isFree()));
    }

    public function unconfirmedCount(): int
    {
        return \count(array_filter($this->all, static fn(PooledSession $pooled): bool => $pooled->isUnconfirmed()));
    }

    public function findFree(): ?PooledSession
    {
        foreach ($this->all as $pooled) {
            if ($pooled->isFree()) {
                return $pooled;
            }
        }

        return null;
    }

    /**
     * Returns a session on which a query of about `$cost` nanoseconds is answered soon; otherwise the shareable session
     * with the least load; null when there is neither.
     *
     * Queries that share a session share its round trips, and the server wakes fewer processes. Round trips and
     * wake-ups are most of the cost of a short statement. So a shared session is preferred to a free one.
     */
    public function findShareable(int $cost): ?PooledSession
    {
        if ($this->lastShared !== null && $this->lastShared->borrowers > 0 && $this->lastShared->answersSoon($cost)) {
            return $this->lastShared;
        }
        $free = $best = null;
        foreach ($this->all as $pooled) {
            if ($pooled->answersSoon($cost)) {
                if ($pooled->borrowers > 0) {
                    return $this->lastShared = $pooled;
                }
                $free ??= $pooled;
            } elseif ($pooled->isShareable() && ($best === null || $pooled->load < $best->load)) {
                $best = $pooled;
            }
        }

        return $this->lastShared = $free ?? $best;
    }

    /** Lets no further query share a session, so that the session becomes free for a waiting exclusive borrower. */
    public function reserve(PooledSession $pooled): void
    {
        $pooled->isReserved = true;
        ++$this->reservedCount;
    }

    public function unreserve(PooledSession $pooled): void
    {
        if ($pooled->isReserved) {
            $pooled->isReserved = false;
            --$this->reservedCount;
        }
    }

    public function findReserved(): ?PooledSession
    {
        foreach ($this->all as $pooled) {
            if ($pooled->isReserved) {
                return $pooled;
            }
        }

        return null;
    }

    /**
     * Postpones the running query of each stalled session: cancels the query, and usually sends it again after later
     * queries. Without a postponement, a query that waits for a transaction's lock could wait forever, if the
     * transaction ends only after a later query of this session.
     *
     * @return bool whether any session is shared by several queries
     */
    public function postponeStalled(): bool
    {
        $isShared = false;
        foreach ($this->all as $pooled) {
            $isShared = $isShared || $pooled->borrowers > 1;
            if ($pooled->checkStall()) {
                $pooled->markForReset();
                $pooled->session->postpone();
            }
        }

        return $isShared;
    }

    /** Drops free sessions that are too old. Above `$minConnections`, also drops those that were idle too long. */
    public function dropExpired(float $idleTimeout, int $minConnections): void
    {
        foreach ($this->free() as $pooled) {
            $isUnneeded = \count($this->all) > $minConnections && $pooled->idleSeconds() >= $idleTimeout;
            if ($isUnneeded || hrtime(true) > $pooled->expiresAt) {
                $this->drop($pooled);
            }
        }
    }

    public function drop(PooledSession $pooled, ?ConnectionClosedException $reason = null): void
    {
        $index = array_search($pooled, $this->all, true);
        if ($index !== false) {
            array_splice($this->all, $index, 1);
        }
        $this->unreserve($pooled);
        $this->lastShared = $this->lastShared === $pooled ? null : $this->lastShared;
        $pooled->session->close($reason);
    }
}
