<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\Internal\NumberRange;
use Spindle\Worker\WorkerPoolOptions;

/** Options of an {@see Agent}. The defaults suit most queues. */
final class AgentOptions
{
    /**
     * @param WorkerPoolOptions $pool                options of the workers. The option `php` also applies to the
     *                                               launchers of commands and to the lease guard
     * @param float             $lease               seconds from the last renewal to the end of the lease, after which
     *                                               other agents can claim the agent's jobs
     * @param float             $heartbeat           seconds between two renewals of the lease
     * @param float             $leaseMargin         if the lease can't be renewed, the agent ends its running jobs
     *                                               this many seconds before the lease ends
     * @param float             $outcomeRetention    seconds for which outcomes are kept
     * @param int               $maxResultBytes      maximum size in bytes of a task's result, of a generator's item,
     *                                               and of a command's output; also limited by memory_limit. An
     *                                               exception that exceeds both this size and 64 KiB is shortened
     * @param float|null        $stopTimeout         seconds that running jobs have to finish after
     *                                               {@see Agent::close()}. Then the agent ends them as
     *                                               {@see Agent::kill()} does. Null for no limit
     * @param bool              $leaseGuard          whether a watchdog process ends the jobs of an agent that is
     *                                               suspended (SIGSTOP, freezer) or lacks memory.
     *                                               `$leaseMargin / 2` seconds before the lease ends, the watchdog
     *                                               kills all other descendants of this process. Needs Linux's /proc
     * @param int               $maxDeadLetters      number of kept dead letters (failed jobs); older ones are dropped
     * @param float             $deadLetterRetention seconds for which the queue keeps dead letters
     *
     * @throws \ValueError
     */
    public function __construct(
        public readonly WorkerPoolOptions $pool = new WorkerPoolOptions(),
        public readonly float $lease = 10.0,
        public readonly float $heartbeat = 1.0,
        public readonly float $leaseMargin = 3.0,
        public readonly float $outcomeRetention = 3600.0,
        public readonly int $maxResultBytes = 16 << 20,
        public readonly ?float $stopTimeout = null,
        public readonly bool $leaseGuard = true,
        public readonly int $maxDeadLetters = 100_000,
        public readonly float $deadLetterRetention = 30 * 86400.0,
    ) {
        if ($stopTimeout !== null && !($stopTimeout >= 0)) {
            throw new \ValueError('The stop timeout must be 0 or more seconds, not ' . NumberRange::text($stopTimeout));
        }
        NumberRange::checkCount('The bytes of a result', $maxResultBytes, 1);
        NumberRange::checkSeconds('The lease', $lease);
        NumberRange::checkSeconds('The retention of outcomes', $outcomeRetention);
        if ($maxDeadLetters < 1 || !($deadLetterRetention >= 1)) {
            throw new \ValueError('A queue must keep 1 dead letter or more, for 1 second or more');
        }
        if (!($heartbeat > 0 && $leaseMargin > 0)) {
            throw new \ValueError(
                'The heartbeat and the lease margin must be more than 0 seconds, not '
                    . NumberRange::text($heartbeat) . ' and ' . NumberRange::text($leaseMargin),
            );
        }
        if (!($lease > $heartbeat + $leaseMargin)) {
            throw new \ValueError(
                'The lease must be longer than the heartbeat and the lease margin together: more than '
                    . ($heartbeat + $leaseMargin)
                    . ' seconds, not ' . NumberRange::text($lease),
            );
        }
        if (!($outcomeRetention >= 1)) {
            throw new \ValueError("The retention of outcomes must be 1 second or more, not {$outcomeRetention}");
        }
    }

    public function withPool(WorkerPoolOptions $pool): self
    {
        // @phpstan-ignore argument.type (the names and types are those of the constructor)
        return new self(...[...get_object_vars($this), 'pool' => $pool]);
    }
}
