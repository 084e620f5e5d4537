<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\WeakTimer;
use Spindle\Worker\ExecutorClosedException;

/**
 * Ends tasks whose outcomes no fiber needs: cancelled submitted tasks, tasks of an abandoned map() call (the caller
 * left or cancelled the loop), and generator tasks whose generator the caller has released. Drops the tasks that have
 * not started. For a task that is running, ends the worker, because nothing else can end the task.
 */
final class UnwantedTasks
{
    /** Seconds that an abandoned map() task or a released generator may still run before its worker is ended. */
    public const TIMEOUT = 0.02;

    public function __construct(
        private readonly Workers $workers,
        private readonly Submissions $submissions,
        private readonly Backlog $backlog,
        private readonly TaskTimeouts $timeouts,
        private readonly PoolEvents $pool,
    ) {}

    /** Cancels a task that is not over. The task fails with `$reason` when it has ended or can no longer start. */
    public function cancel(Submission $submission, \Throwable $reason): void
    {
        $submission->cancelled = $reason;
        if ($this->submissions->withdraw($submission, $reason) || $this->backlog->withdraw($submission, $reason)) {
            return;
        }
        foreach ($this->workers->all as $worker) {
            foreach ($worker->batches as $batch) {
                $index = $batch->source === $this->submissions ? array_search($submission, $batch->keys, true) : false;
                if ($index === false || $index < $batch->receivedCount || $index >= $batch->limit) {
                    continue; // the worker does not have the task: the outcome has arrived, or the task was taken back
                }
                $this->end($worker, $batch, $index, $reason);

                return;
            }
        }
    }

    /** Drops unstarted tasks of a map() call. After `$timeout` seconds, ends workers that still run its tasks. */
    public function abandon(MapRun $run, float $timeout): void
    {
        $this->backlog->drop($run);
        foreach ($this->workers->all as $worker) {
            if (!self::hasTasksOf($worker, $run)) {
                continue;
            }
            $this->timeouts->takeBack($worker);
            if ($timeout === 0.0) {
                $this->endIfRunning($worker, $run);
            } else {
                $worker->timers["abandoned {$run->id()}"] = WeakTimer::after(
                    $timeout,
                    $this,
                    static function (self $tasks) use ($worker, $run): void {
                        unset($worker->timers["abandoned {$run->id()}"]);
                        $tasks->endIfRunning($worker, $run);
                    },
                );
            }
        }
        $this->finishIfAbandoned($run);
        $this->pool->fill();
    }

    public function finishIfAbandoned(MapRun $run): void
    {
        if (!$run->isAbandoned()) {
            return;
        }
        foreach ($this->workers->all as $worker) {
            if (self::hasTasksOf($worker, $run)) {
                return;
            }
        }
        $run->finish();
    }

    /** Ends a generator task that the caller has released, if the task still runs after {@see TIMEOUT} seconds. */
    public function endReleased(WorkerHandle $worker, Batch $batch, int $index): void
    {
        if ($worker->firstBatch() === $batch) {
            $this->endLater($worker, $batch, $index, null);
        }
    }

    /**
     * Ends the next task of the batch if it is cancelled and still runs after {@see TIMEOUT} seconds. Called when a
     * worker without {@see SharedFlags} has begun the task. From such a worker, the pool cannot take tasks back.
     */
    public function endIfCancelled(WorkerHandle $worker, Batch $batch): void
    {
        $task = $batch->tasks[$batch->receivedCount] ?? null;
        if ($task instanceof Submission && $task->cancelled !== null) {
            $this->endLater($worker, $batch, $batch->receivedCount, $task->cancelled);
        }
    }

    private function endLater(WorkerHandle $worker, Batch $batch, int $index, ?\Throwable $reason): void
    {
        $name = "unwanted {$batch->id} {$index}";
        $worker->timers[$name] = WeakTimer::after(
            self::TIMEOUT,
            $this,
            static function (self $tasks) use ($worker, $batch, $index, $reason, $name): void {
                unset($worker->timers[$name]);
                if ($index >= $batch->receivedCount && $worker->createKillFailure === null) {
                    $tasks->end($worker, $batch, $index, $reason ?? ExecutorClosedException::abandoned());
                }
            },
        );
    }

    /** Takes back the tasks that a worker has not started, and ends the worker if it still runs the unwanted task. */
    private function end(WorkerHandle $worker, Batch $batch, int $index, \Throwable $reason): void
    {
        $this->timeouts->takeBack($worker);
        if ($worker->lastStartedTask() === [$batch, $index]) {
            $worker->endingTask = [$batch, $index];
            $worker->end(static fn(): \Throwable => $reason);
        }
        $this->pool->fill();
    }

    private static function hasTasksOf(WorkerHandle $worker, MapRun $run): bool
    {
        $isOfRun = static fn(Batch $batch): bool => $batch->source === $run && $batch->receivedCount < $batch->limit;

        return array_filter($worker->batches, $isOfRun) !== [];
    }

    private function endIfRunning(WorkerHandle $worker, MapRun $run): void
    {
        [$batch, $index] = $worker->lastStartedTask() ?? [null, 0];
        if ($batch?->source === $run && $worker->createKillFailure === null && $index >= $batch->receivedCount) {
            $this->end($worker, $batch, $index, $run->abortReason ?? ExecutorClosedException::abandoned());
        }
    }
}
