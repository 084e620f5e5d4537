<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\Internal\NumberRange;
use Spindle\Worker\WorkerPoolOptions;

/** Options of an agent. The defaults suit most queues. */
final class AgentOptions
{
    /**
     * @param WorkerPoolOptions $pool          options of the workers
     * @param float             $lease         seconds after a renewal at which other agents may claim the agent's jobs
     * @param float             $beat          seconds between two renewals
     * @param float             $margin        an agent that can't renew its lease ends its jobs this many seconds
     *                                         before its end
     * @param float             $retention     seconds for which outcomes are kept
     * @param int               $maxResult     largest result of a task, and largest item of a generator, in bytes
     * @param float|null        $stopTimeout   seconds that running tasks have to finish after a stop request. Then the
     *                                         agent gives them back, which counts neither as an attempt nor as a crash.
     *                                         Null for no limit
     * @param int               $maxDead       dead letters that the queue keeps; beyond that the oldest are dropped
     * @param float             $deadRetention seconds for which the queue keeps dead letters
     * @param bool              $guard         whether a helper process kills everything that this process has started
     *                                         when half of the margin is left. A stopped process (SIGSTOP, a freezer,
     *                                         no memory) can't do that itself. The helper finds processes in /proc, so
     *                                         it works on Linux only
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
            throw new \ValueError('A queue must keep 1 dead letter or more, for 1 second or more');
        }
        if (!($beat > 0 && $margin > 0)) {
            throw new \ValueError("The beat and the margin must be more than 0 seconds, not {$beat} and {$margin}");
        }
        if (!($lease > $beat + $margin)) {
            throw new \ValueError(
                'The lease must be longer than the beat and the margin together, more than '
                    . ($beat + $margin)
                    . " seconds, not {$lease}",
            );
        }
        if (!($retention >= 1)) {
            throw new \ValueError("The retention of outcomes must be 1 second or more, not {$retention}");
        }
    }

    /** Returns a copy with other options for the workers. */
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
