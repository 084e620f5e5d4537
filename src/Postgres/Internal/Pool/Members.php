<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

/** The sessions of a pool that are open, and which of them to take. */
final class Members
{
    /** @var list<Member> */
    public array $all = [];

    private int $turn = 0;

    /** One that nobody uses. */
    public function free(): ?Member
    {
        foreach ($this->all as $member) {
            if ($member->isFree() && !$member->reserved) {
                return $member;
            }
        }

        return null;
    }

    /**
     * The first where a statement is answered soon: those who share it share its round trips too, which for short statements are most of
     * what they cost on either side, and the server has fewer processes to wake. Where the server takes its time, of two the one with fewer
     * queries, which is nearly as good as the least busy of all.
     */
    public function shareable(): ?Member
    {
        $now = hrtime(true);
        foreach ($this->all as $member) {
            if ($member->answersSoon($now)) {
                return $member;
            }
        }
        $best = null;
        $count = \count($this->all);
        for ($looks = $count; $looks > 0; --$looks) {
            $member = $this->all[$this->turn = ($this->turn + 1) % $count];
            if ($member->isShareable($now)) {
                if ($best !== null) {
                    return $member->queries < $best->queries ? $member : $best;
                }
                $best = $member;
            }
        }

        return $best;
    }

    /**
     * Sees to it that of the sessions that are shared so many run empty, those with the fewest queries if they are not reserved already.
     *
     * @return list<Member> that are reserved no more
     */
    public function reserve(int $wanted): array
    {
        $shared = array_filter($this->all, static fn(Member $member): bool => !$member->alone);
        usort($shared, static fn(Member $a, Member $b): int => [$b->reserved, $a->queries] <=> [$a->reserved, $b->queries]);
        $surplus = array_values(array_filter(\array_slice($shared, max(0, $wanted)), static fn(Member $member): bool => $member->reserved));
        foreach ($shared as $index => $member) {
            $member->reserved = $index < $wanted;
        }

        return $surplus;
    }

    /** Closes it as well. */
    public function drop(Member $member): void
    {
        $index = array_search($member, $this->all, true);
        if ($index !== false) {
            array_splice($this->all, $index, 1);
        }
        $member->session->close();
    }
}
