<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\Internal\NumberRange;
use Spindle\Worker\WorkerPoolOptions;

/** What an agent can be told. The defaults need no thought. */
final class AgentOptions
{
    /**
     * @param WorkerPoolOptions $pool how its workers are
     * @param float $lease     seconds after which its jobs are others', if it is not heard of
     * @param float $beat      seconds between two renewals
     * @param float $margin    seconds before the end of a lease that could not be renewed at which it ends what it runs
     * @param float $retention seconds that outcomes are kept
     * @param int   $maxResult bytes that the result of a task may have, and each item of a generator
     * @param float|null $stopTimeout seconds that running tasks have to finish once the agent is told to stop; then it ends
     *                        them and gives them back, which counts neither as a try nor as a crash. Null for no limit
     * @param int        $maxDead dead letters that the queue keeps; the oldest of more are dropped
     * @param float      $deadRetention seconds that it keeps them
     * @param bool       $guard whether a small process kills all that this process has started when half of the margin is
     *                        left: a process that was stopped (SIGSTOP, a freezer, no memory) cannot do that itself. It finds
     *                        them in /proc, so on Linux only
     *
     * @throws \ValueError
     */
    public function __construct(
        public readonly WorkerPoolOptions $pool = new WorkerPoolOptions(),
        public readonly float $lease = 10.0,
        public readonly float $beat = 1.0,
        public readonly float $margin = 3.0,
        public readonly float $retention = 3600.0,
        public readonly int $maxResult = 16 << 20,
        public readonly ?float $stopTimeout = null,
        public readonly bool $guard = true,
        public readonly int $maxDead = 100_000,
        public readonly float $deadRetention = 30 * 86400.0,
    ) {
        if ($stopTimeout !== null && !($stopTimeout >= 0)) {
            throw new \ValueError("The stop timeout must be 0 or more seconds, not {$stopTimeout}");
        }
        NumberRange::count('The bytes of a result', $maxResult, 1);
        NumberRange::seconds('The lease', $lease);
        NumberRange::seconds('The retention of outcomes', $retention);
        if ($maxDead < 1 || !($deadRetention >= 1)) {
            throw new \ValueError('A queue keeps 1 dead letter or more, for a second or more');
        }
        if (!($beat > 0 && $margin > 0 && $lease > $beat + $margin && $retention >= 1)) {
            throw new \ValueError('A lease is longer than the time between two renewals and the margin together, which are more than 0 seconds, and outcomes are kept for a second or more');
        }
    }

    /** The same with other options for its workers. */
    public function withPool(WorkerPoolOptions $pool): self
    {
        return new self(
            $pool,
            $this->lease,
            $this->beat,
            $this->margin,
            $this->retention,
            $this->maxResult,
            $this->stopTimeout,
            $this->guard,
            $this->maxDead,
            $this->deadRetention,
        );
    }
}
