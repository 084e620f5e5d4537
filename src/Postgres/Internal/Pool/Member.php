<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\Session;

/** A session of a pool. */
final class Member
{
    /** Queries of different borrowers that share it now. */
    public int $queries = 0;

    /** Whether one borrower has it alone, or it is being looked after. */
    public bool $alone = false;

    /** Whether nobody shares it any more, because somebody is to have it alone. */
    public bool $reserved = false;

    /** @param int $until when it is to be replaced: hrtime */
    public function __construct(public readonly Session $session, public readonly int $until) {}

    public function isFree(): bool
    {
        return !$this->alone && $this->queries === 0;
    }
}
