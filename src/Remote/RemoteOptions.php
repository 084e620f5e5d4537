<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Psr\Log\LoggerInterface;
use Spindle\Internal\NumberRange;

/** Options of remote tasks and commands. The defaults suit most queues. The engine is the Redis or Valkey server. */
final class RemoteOptions
{
    /**
     * @param float|null $timeout maximum run time of a task in seconds; null for no limit. The time that a
     *     generator waits until its items are read does not count
     * @param int $maxJobs maximum number of jobs without an outcome in the queue; more jobs are refused
     * @param int $maxPayloadBytes maximum size in bytes of a task with its argument, or of a command. Each agent of the
     *     queue needs a memory_limit of at least six times this size. A job that is too large for the agents becomes
     *     a dead letter
     * @param float $brokerRetryTimeout seconds for which submissions, calls of cancel() and requests for items are
     *     retried while the engine is not available. If a submitted task is cancelled while the engine is not
     *     available, the task's future fails after this number of seconds, at least 1. The agent ends the task when the
     *     engine is available again
     * @param (\Closure(mixed): mixed)|null $onReport receives the values that tasks send with
     *     {@see \Spindle\Worker\TaskContext::report()}; reports can be lost
     * @param LoggerInterface|null $logger gets one warning if an outcome is awaited for 5 seconds and no agent serves
     *     the queue
     *
     * @throws \ValueError when a number is out of its range
     */
    public function __construct(
        public readonly ?float $timeout = null,
        public readonly int $maxJobs = 1_000_000,
        public readonly int $maxPayloadBytes = 1 << 20,
        public readonly float $brokerRetryTimeout = 20.0,
        public readonly ?\Closure $onReport = null,
        public readonly ?LoggerInterface $logger = null,
    ) {
        if ($timeout !== null && !($timeout > 0)) {
            throw new \ValueError('The timeout must be more than 0 seconds, not ' . NumberRange::text($timeout));
        }
        if (!($brokerRetryTimeout >= 0)) {
            throw new \ValueError(
                "The broker's retry timeout must be 0 or more seconds, not " . NumberRange::text($brokerRetryTimeout),
            );
        }
        if ($maxJobs < 1 || $maxPayloadBytes < 1) {
            throw new \ValueError(
                "The limits \$maxJobs and \$maxPayloadBytes must be 1 or more, not {$maxJobs} and {$maxPayloadBytes}",
            );
        }
    }
}
