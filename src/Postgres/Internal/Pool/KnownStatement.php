<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\Native\ServerTime;

/** A statement that a pool has run before: whether it may share a session, and how long the server needs for it. */
final class KnownStatement
{
    /** Nanoseconds from which a single execution shows that the statement may be slow. */
    private const SLOW_NANOSECONDS = 50_000_000;

    /** Executions in a row that must then be shorter before the statement may share again. */
    private const PROBATION_EXECUTIONS = 50;

    /** Smallest cost, in nanoseconds: no statement is free. */
    private const MIN_COST_NANOSECONDS = 2_000;

    /** Whether it may share a session: follow other statements, and be followed by others. */
    public bool $shares = false;

    /** Nanoseconds that the server usually needs, nearer to the shortest time seen than to the longest. */
    public int $cost;

    private int $probation = 0;

    /**
     * @param bool $isPlain whether it does not change the session or its transaction, and an error undoes all of it
     * @param bool $reads   whether it only reads, and waits for no row lock
     */
    public function __construct(public readonly bool $isPlain, public readonly bool $reads, int $nanoseconds)
    {
        // The first execution is slower: the server parses, plans and reads data that is not in memory yet.
        $this->cost = max(self::MIN_COST_NANOSECONDS, min($nanoseconds, ServerTime::SHORT_NANOSECONDS));
        $this->learn($nanoseconds < self::SLOW_NANOSECONDS ? $this->cost : $nanoseconds);
    }

    /** @param int $nanoseconds that the server took; negative when unknown */
    public function learn(int $nanoseconds): void
    {
        if ($nanoseconds < 0) {
            return;
        }
        if ($nanoseconds >= self::SLOW_NANOSECONDS) {
            $nanoseconds = self::SLOW_NANOSECONDS;
            $this->probation = self::PROBATION_EXECUTIONS;
        } elseif ($this->probation > 0) {
            --$this->probation;
        }
        // A busy machine makes times longer, and nothing makes them shorter.
        $difference = $nanoseconds - $this->cost;
        $this->cost = max(
            self::MIN_COST_NANOSECONDS,
            $this->cost + ($difference < 0 ? $difference >> 1 : $difference >> 5),
        );
        $this->shares = $this->reads && $this->probation === 0 && $this->cost <= ServerTime::SHORT_NANOSECONDS;
    }
}
