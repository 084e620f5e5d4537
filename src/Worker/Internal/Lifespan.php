<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\WorkerPoolOptions;

/**
 * When a worker is due to be replaced: by its tasks, its age, its memory. And how long it may have nothing to do.
 *
 * Time is that of {@see hrtime()}: a clock that is set does not make a worker older.
 */
final class Lifespan
{
    public function __construct(private readonly WorkerPoolOptions $options) {}

    /** Whether it has lived long enough. It is asked between tasks, when its memory is its own. */
    public function isOver(WorkerHandle $worker): bool
    {
        return $this->tasksLeft($worker) === 0;
    }

    /** How many more tasks it may be given. */
    public function tasksLeft(WorkerHandle $worker): int
    {
        if ($this->options->maxAge !== null && (hrtime(true) - $worker->readyAt) / 1e9 >= $this->options->maxAge) {
            return 0;
        }
        $growth = $worker->memory - $worker->memoryAtFirst;
        if ($this->options->maxGrowth !== null && $growth > $this->options->maxGrowth) {
            return 0;
        }
        if ($this->options->maxTasks === null) {
            return \PHP_INT_MAX;
        }
        $tasks = $worker->tasks;
        foreach ($worker->batches as $batch) {
            $tasks += $batch->limit - $batch->arrived;
        }

        return max(0, $this->options->maxTasks - $tasks);
    }

    /** Seconds for which it may go on having nothing to do; INF for ever. */
    public function idleLeft(WorkerHandle $worker): float
    {
        return $this->options->idleTimeout - (hrtime(true) - $worker->idleSince) / 1e9;
    }
}
