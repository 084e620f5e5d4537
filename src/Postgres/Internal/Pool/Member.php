<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\Session;

/** A session of a pool. */
final class Member
{
    /** Queries that share a session at most: so many one that is slow for once can hold up. */
    public const MOST_SHARING = 64;

    /** Nanoseconds that those ahead of a query on the same session may take, as long as it could have another. */
    private const SOON = 500_000;

    /** Queries of different borrowers that share it now. */
    public int $queries = 0;

    /** Whether one borrower has it alone, or it is being looked after. */
    public bool $alone = false;

    /** Whether nobody shares it any more, because somebody is to have it alone. */
    public bool $reserved = false;

    /** @param int $until when it is to be replaced: hrtime */
    public function __construct(public readonly Session $session, public readonly int $until) {}

    /**
     * Whether one more query may share it: not when the server has been at the same one for so long that it is not short.
     *
     * @param int $now hrtime
     */
    public function isShareable(int $now): bool
    {
        return !$this->alone && !$this->reserved && ($this->queries === 0 || $this->queries < self::MOST_SHARING && $now - $this->session->lastActivity() < Paces::SHORT);
    }

    /**
     * Whether one more query may share it, and is answered soon.
     *
     * @param int $now hrtime
     */
    public function answersSoon(int $now): bool
    {
        return !$this->alone && !$this->reserved && ($this->queries === 0 || $this->queries < self::MOST_SHARING
            && $this->queries * $this->session->pace() < self::SOON && $now - $this->session->lastActivity() < self::SOON);
    }

    public function isFree(): bool
    {
        return !$this->alone && $this->queries === 0;
    }
}
