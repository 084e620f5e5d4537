<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\WorkerPoolOptions;

/**
 * Decides when a worker is replaced because of its number of tasks, age or memory, and how long it may be idle. Times
 * come from {@see hrtime()}, so that a change of the system clock has no effect.
 */
final class WorkerLifetime
{
    public function __construct(private readonly WorkerPoolOptions $options) {}

    /** Returns whether an idle worker must be replaced. */
    public function isOver(WorkerHandle $worker): bool
    {
        return $this->tasksLeft($worker) === 0;
    }

    /** Returns how many more tasks the worker can be given; 0 if it must be replaced after those that it has. */
    public function tasksLeft(WorkerHandle $worker): int
    {
        if ($this->options->maxAge !== null && (hrtime(true) - $worker->readyAt) / 1e9 >= $this->options->maxAge) {
            return 0;
        }
        $growth = $worker->memory - $worker->initialMemory;
        if ($this->options->maxGrowth !== null && $growth > $this->options->maxGrowth) {
            return 0;
        }
        if ($this->options->maxTasks === null) {
            return \PHP_INT_MAX;
        }
        $tasks = $worker->outcomeCount;
        foreach ($worker->batches as $batch) {
            $tasks += $batch->limit - $batch->receivedCount;
        }

        return max(0, $this->options->maxTasks - $tasks);
    }

    /** Returns how many more seconds the worker may be idle; INF for no limit. */
    public function idleLeft(WorkerHandle $worker): float
    {
        return $this->options->idleTimeout - (hrtime(true) - $worker->idleSince) / 1e9;
    }
}
