<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\Native\ServerTime;

/** A statement that a pool has run before: whether it may share a session, and how long the server needs for it. */
final class KnownStatement
{
    /** Nanoseconds from which an execution is slow. After a slow execution, the statement may not share a session. */
    private const SLOW_NANOSECONDS = 50_000_000;

    /** Consecutive executions that must be faster after a slow one before the statement may share a session again. */
    private const PROBATION_EXECUTIONS = 50;

    /** Minimum cost in nanoseconds. */
    private const MIN_COST_NANOSECONDS = 2_000;

    /** Whether the statement may be sent on a session before earlier and later statements are answered. */
    public bool $mayShare = false;

    /** Moving average of the server's time in nanoseconds, which follows shorter times faster than longer ones. */
    public int $cost;

    /** Number of executions that must still be fast after a slow one. */
    private int $probation = 0;

    /**
     * @param bool $isPlain whether the statement changes neither the session nor its transaction, and an error undoes
     *     all that the statement did
     * @param bool $isShareableRead whether the statement only reads and waits for no row lock
     */
    public function __construct(public readonly bool $isPlain, public readonly bool $isShareableRead, int $nanoseconds)
    {
        // The first execution is slower: the server parses, plans and reads data that is not in memory yet.
        $this->cost = max(self::MIN_COST_NANOSECONDS, min($nanoseconds, ServerTime::SHORT_NANOSECONDS));
        $this->learn($nanoseconds < self::SLOW_NANOSECONDS ? $this->cost : $nanoseconds);
    }

    /** @param int $nanoseconds time of an execution on the server; negative when unknown */
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
        // Load on the machine makes times longer, but nothing makes them shorter. So short times weigh more.
        $difference = $nanoseconds - $this->cost;
        $this->cost = max(
            self::MIN_COST_NANOSECONDS,
            $this->cost + ($difference < 0 ? $difference >> 1 : $difference >> 5),
        );
        $isShort = $this->probation === 0 && $this->cost <= ServerTime::SHORT_NANOSECONDS;
        $this->mayShare = $this->isShareableRead && $isShort;
    }
}
