<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\Native\ServerTime;

/** What a pool knows of a statement that ran before: how it may be run, and how long the server needs for it. */
final class KnownStatement
{
    /** Nanoseconds from which on a single execution tells that a statement may take long. */
    private const LONG = 50_000_000;

    /** Executions in a row that must be shorter after that. */
    private const PROBATION = 50;

    /** Least cost, in nanoseconds: no statement is free. */
    private const LEAST = 2_000;

    /** Whether other statements may follow it on its connection, and it may follow others. */
    public bool $shares = false;

    /** Nanoseconds that the server usually needs, nearer to the least than to the most that was seen. */
    public int $cost;

    private int $probation = 0;

    /**
     * @param bool $isPlain whether it leaves the session and its transaction as they are, and an error undoes all of it
     * @param bool $reads   whether it only reads, and waits for no row lock
     */
    public function __construct(public readonly bool $isPlain, public readonly bool $reads, int $nanoseconds)
    {
        // The first execution is slower than others: the server parses and plans, and reads what it has not in memory.
        $this->cost = max(self::LEAST, min($nanoseconds, ServerTime::SHORT));
        $this->learn($nanoseconds < self::LONG ? $this->cost : $nanoseconds);
    }

    /** @param int $nanoseconds that the server took; negative when unknown */
    public function learn(int $nanoseconds): void
    {
        if ($nanoseconds < 0) {
            return;
        }
        if ($nanoseconds >= self::LONG) {
            $nanoseconds = self::LONG;
            $this->probation = self::PROBATION;
        } elseif ($this->probation > 0) {
            --$this->probation;
        }
        // A machine that is busy makes times longer, and nothing makes them shorter.
        $difference = $nanoseconds - $this->cost;
        $this->cost = max(self::LEAST, $this->cost + ($difference < 0 ? $difference >> 1 : $difference >> 5));
        $this->shares = $this->reads && $this->probation === 0 && $this->cost <= ServerTime::SHORT;
    }
}
