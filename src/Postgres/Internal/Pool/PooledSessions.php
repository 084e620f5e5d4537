<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

/** Open sessions of a pool, and the choice among them. */
final class PooledSessions
{
    /** @var list<PooledSession> */
    public array $all = [];

    public int $reserved = 0;

    /** Session that was chosen for a query last. */
    private ?PooledSession $last = null;

    public function free(): ?PooledSession
    {
        foreach ($this->all as $pooled) {
            if ($pooled->isFree()) {
                return $pooled;
            }
        }

        return null;
    }

    /**
     * Returns a session on which a query is answered soon; if there is none, the one with the least load.
     *
     * Queries that share a session share its round trips, and the server wakes fewer processes. For short statements
     * these are most of the cost. So a session that is shared already comes before one that is free.
     *
     * @param int $cost nanoseconds that the query usually takes
     */
    public function shareable(int $cost): ?PooledSession
    {
        if ($this->last !== null && $this->last->borrowers > 0 && $this->last->answersSoon($cost)) {
            return $this->last;
        }
        $free = $best = null;
        foreach ($this->all as $pooled) {
            if ($pooled->answersSoon($cost)) {
                if ($pooled->borrowers > 0) {
                    return $this->last = $pooled;
                }
                $free ??= $pooled;
            } elseif ($pooled->isShareable() && ($best === null || $pooled->load < $best->load)) {
                $best = $pooled;
            }
        }

        return $this->last = $free ?? $best;
    }

    /** Ends sharing of a session, so that one borrower can have it alone when its queries are done. */
    public function reserve(PooledSession $pooled): void
    {
        $pooled->reserved = true;
        ++$this->reserved;
    }

    public function unreserve(PooledSession $pooled): void
    {
        if ($pooled->reserved) {
            $pooled->reserved = false;
            --$this->reserved;
        }
    }

    public function anyReserved(): ?PooledSession
    {
        foreach ($this->all as $pooled) {
            if ($pooled->reserved) {
                return $pooled;
            }
        }

        return null;
    }

    /** Removes a session and closes it. */
    public function drop(PooledSession $pooled): void
    {
        $index = array_search($pooled, $this->all, true);
        if ($index !== false) {
            array_splice($this->all, $index, 1);
        }
        $this->unreserve($pooled);
        $this->last = $this->last === $pooled ? null : $this->last;
        $pooled->session->close();
    }
}
