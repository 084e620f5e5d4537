<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** Options of remote tasks and commands. The defaults suit most queues. */
final class RemoteOptions
{
    /**
     * @param float|null $timeout    seconds that a task may run; null for no limit
     * @param int        $backlog    largest number of jobs in the queue, not counting dead letters
     * @param int        $maxPayload largest size of a task with its argument in bytes. Each agent of the queue needs
     *                               a memory_limit of six times as much; a larger job becomes a dead letter
     * @param float      $patience   seconds for which submissions and requests for items are retried while the engine
     *                               is not available. If a task is cancelled during that time, its future fails at
     *                               the end of the time, and the task is ended when the engine is back
     * @param (\Closure(mixed): void)|null $onReport receives what tasks send with
     *                                               {@see \Spindle\Worker\TaskContext::report()}; reports may be lost
     *
     * @throws \ValueError when a number is out of its range
     */
    public function __construct(
        public readonly ?float $timeout = null,
        public readonly int $backlog = 1_000_000,
        public readonly int $maxPayload = 1 << 20,
        public readonly float $patience = 20.0,
        public readonly ?\Closure $onReport = null,
    ) {
        if ($timeout !== null && !($timeout > 0)) {
            throw new \ValueError("The timeout must be more than 0 seconds, not {$timeout}");
        }
        if (!($patience >= 0)) {
            throw new \ValueError("The patience must be 0 or more seconds, not {$patience}");
        }
        if ($backlog < 1 || $maxPayload < 1) {
            throw new \ValueError('The backlog must be 1 job or more, and the largest payload 1 byte or more');
        }
    }
}
