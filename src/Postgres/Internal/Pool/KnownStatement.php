<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\Protocol\ServerTime;

/** A statement that a pool has run before: whether it may share a session, and how long the server needs for it. */
final class KnownStatement
{
    /** Executions of at least this many nanoseconds are slow. A slow statement must not share a session. */
    private const SLOW_NANOSECONDS = 50_000_000;

    /** After a slow execution, this many faster ones must follow in a row before the statement may share a session. */
    private const PROBATION_EXECUTIONS = 50;

    private const MIN_COST_NANOSECONDS = 2_000;

    /** Whether the statement may be in flight on a session together with earlier and later statements. */
    public bool $mayShare = false;

    /** Moving average of the nanoseconds that an execution takes on the server. Shorter times weigh more. */
    public int $cost;

    /** Number of faster executions that are still needed before the statement may share a session. */
    private int $probation = 0;

    /**
     * @param bool $isPlain whether the statement changes neither the session nor its transaction, and an error undoes
     *     all that the statement did
     * @param bool $isShareableRead whether the statement only reads and waits for no row lock
     */
    public function __construct(public readonly bool $isPlain, public readonly bool $isShareableRead, int $nanoseconds)
    {
        // The first execution takes longer (parsing, planning, disk), so at most SHORT_NANOSECONDS of its time count.
        // But if the first execution is slow, the statement counts as slow, and shares no session.
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
