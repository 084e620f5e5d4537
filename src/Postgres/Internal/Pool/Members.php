<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

/** The sessions of a pool that are open, and which of them to take. */
final class Members
{
    /** @var list<Member> */
    public array $all = [];

    /** How many are reserved. */
    public int $reserved = 0;

    /** Where a query was added last. */
    private ?Member $last = null;

    /** Returns one that is not in use. */
    public function free(): ?Member
    {
        foreach ($this->all as $member) {
            if ($member->isFree()) {
                return $member;
            }
        }

        return null;
    }

    /**
     * Returns one where a query is answered soon. Queries that share a session share its round trips, which are most of the cost of short
     * statements on either side, and the server has fewer processes to wake. So one that is shared already is filled before another is begun.
     * Where nothing is answered soon, the one with the least ahead.
     *
     * @param int $cost nanoseconds that the query usually takes
     */
    public function shareable(int $cost): ?Member
    {
        if ($this->last !== null && $this->last->borrowers > 0 && $this->last->answersSoon($cost)) {
            return $this->last;
        }
        $free = $best = null;
        foreach ($this->all as $member) {
            if ($member->answersSoon($cost)) {
                if ($member->borrowers > 0) {
                    return $this->last = $member;
                }
                $free ??= $member;
            } elseif ($member->isShareable() && ($best === null || $member->load < $best->load)) {
                $best = $member;
            }
        }

        return $this->last = $free ?? $best;
    }

    /** Ends sharing of one, so that it is free for a borrower alone when the queries that share it are done. */
    public function reserve(Member $member): void
    {
        $member->reserved = true;
        ++$this->reserved;
    }

    public function unreserve(Member $member): void
    {
        if ($member->reserved) {
            $member->reserved = false;
            --$this->reserved;
        }
    }

    public function aReserved(): ?Member
    {
        foreach ($this->all as $member) {
            if ($member->reserved) {
                return $member;
            }
        }

        return null;
    }

    /** Closes it as well. */
    public function drop(Member $member): void
    {
        $index = array_search($member, $this->all, true);
        if ($index !== false) {
            array_splice($this->all, $index, 1);
        }
        $this->unreserve($member);
        $this->last = $this->last === $member ? null : $this->last;
        $member->session->close();
    }
}
