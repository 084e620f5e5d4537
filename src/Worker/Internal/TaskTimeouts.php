<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\Launcher\Process\ProcessTree;
use Spindle\Internal\LoopCallback;
use Spindle\Internal\WeakTimer;
use Spindle\Worker\TaskTimeoutException;

/**
 * Watches workers whose tasks take long. Takes back tasks that wait for a long task of the same worker. Ends the worker
 * of a task that exceeds the time limit. Replaces a worker that was suspended (SIGSTOP) before it began its batch.
 */
final class TaskTimeouts
{
    /** Nanoseconds after which a batch is assumed to contain a long task. The tasks after that task are taken back. */
    private const OVERDUE_NANOSECONDS = 3_000_000;

    /** Seconds until the next check of the time limit while no task's time counts, such as between two tasks. */
    private const BETWEEN_TASKS_INTERVAL = 0.1;

    /** Seconds after which the pool checks whether a worker that has not begun its batch is suspended (SIGSTOP). */
    private const BEGIN_TIMEOUT = 3.0;

    private ?string $overdueTimer = null;

    private ?string $suspensionTimer = null;

    private bool $isClosed = false;

    /** @param float|null $timeout time limit of each task, in seconds; null for none */
    public function __construct(
        private readonly Workers $workers,
        private readonly Backlog $backlog,
        private readonly ?float $timeout,
        private readonly PoolEvents $pool,
    ) {}

    public function close(): void
    {
        LoopCallback::cancel($this->overdueTimer);
        LoopCallback::cancel($this->suspensionTimer);
        $this->isClosed = true;
    }

    public function startClock(WorkerHandle $worker, Batch $batch): void
    {
        if ($this->isClosed) {
            return; // the pool has ended, and this batch has no tasks, because all were taken back
        }
        $batch->firstSince = hrtime(true);
        if ($this->suspensionTimer === null) {
            $this->scheduleSuspensionCheck(self::BEGIN_TIMEOUT);
        }
        if ($this->timeout !== null && !$worker->hasTimeoutTimer) {
            $this->scheduleTimeCheck($worker, $this->timeout);
        }
    }

    /**
     * Returns whether tasks may wait in the worker: they can be taken back, and the first batch is not overdue. If the
     * pool has too many workers, no tasks may wait, because a worker stops only when it has no tasks.
     */
    public function mayQueue(WorkerHandle $worker): bool
    {
        return $worker->sharedFlags !== null && $this->workers->surplus() < 1 && !$this->isOverdue($worker);
    }

    /** Returns whether the worker has run its first batch for so long that no task should wait behind this batch. */
    private function isOverdue(WorkerHandle $worker): bool
    {
        $first = $worker->firstBatch();

        return $first !== null && hrtime(true) - $first->firstSince > self::OVERDUE_NANOSECONDS;
    }

    /**
     * @param array<int, WorkerHandle> $workers
     *
     * @return bool whether tasks can now be given to other workers
     */
    public function takeBackOverdue(array $workers): bool
    {
        $isIdle = $isWaiting = $hasOverdue = false;
        foreach ($workers as $worker) {
            if ($worker->batches === []) {
                $isIdle = $isIdle || $worker->isIdle();
            } elseif ($worker->sharedFlags !== null && $this->hasWaitingTasks($worker)) {
                if ($this->isOverdue($worker)) {
                    $hasOverdue = true;
                    $this->takeBack($worker);
                } else {
                    $isWaiting = true;
                }
            }
        }
        if (
            $isWaiting
            && $this->overdueTimer === null
            && ($isIdle || $this->workers->mayGrow())
            && $this->backlog->batchCount() === 0
        ) {
            $this->overdueTimer = WeakTimer::after(
                self::OVERDUE_NANOSECONDS / 1e9,
                $this,
                static function (self $timeouts): void {
                    $timeouts->overdueTimer = null;
                    $timeouts->pool->fill();
                },
            );
        }

        return $hasOverdue && $this->backlog->batchCount() > 0;
    }

    public function takeBack(WorkerHandle $worker): void
    {
        foreach ($worker->batches as $batch) {
            $this->takeBackBatch($worker, $batch);
        }
    }

    public function takeBackBlocked(MapRun $run): void
    {
        foreach ($this->workers->all as $worker) {
            foreach ($worker->batches as $batch) {
                if (
                    $batch->source === $run
                    && $batch->limit > $worker->startedCount($batch)
                    && !$run->mayRun($batch)
                ) {
                    $this->takeBackBatch($worker, $batch);
                }
            }
        }
    }

    public function takeBackBatch(WorkerHandle $worker, Batch $batch): void
    {
        $started = $worker->takeBack($batch);
        if ($started < $batch->limit) {
            $rest = $batch->slice($started, $batch->limit);
            $batch->limit = $started;
            $this->backlog->add($rest);
        }
    }

    /** Sets a single timer for all workers: setting a timer for each batch would take longer than a tiny task. */
    private function scheduleSuspensionCheck(float $seconds): void
    {
        $this->suspensionTimer = WeakTimer::after($seconds, $this, static function (self $timeouts): void {
            $timeouts->suspensionTimer = null;
            $timeouts->replaceSuspended();
        });
    }

    private function replaceSuspended(): void
    {
        $next = null;
        foreach ($this->workers->all as $worker) {
            $first = $worker->firstBatch();
            if (
                $first === null
                || $worker->sharedFlags === null
                || $worker->createKillFailure !== null
                || $worker->startedCount($first) > 0
            ) {
                continue;
            }
            $left = self::BEGIN_TIMEOUT - (hrtime(true) - $first->firstSince) / 1e9;
            $isSuspended = $left <= 0 && \in_array(ProcessTree::state($worker->pid), ['T', 't'], true);
            $next = min($next ?? self::BEGIN_TIMEOUT, $left > 0 ? $left : self::BEGIN_TIMEOUT);
            if ($isSuspended) {
                $this->replace($worker);
            }
        }
        if ($next !== null && $this->suspensionTimer === null) {
            $this->scheduleSuspensionCheck($next);
        }
    }

    /** Gives the tasks of a suspended worker to other workers, and ends that worker. */
    private function replace(WorkerHandle $worker): void
    {
        $this->takeBack($worker);
        if ($worker->lastStartedTask() === null) { // otherwise the worker has received SIGCONT and runs a task
            $worker->end(static fn(): \Throwable => new \LogicException('The worker ran no task'));
        }
        $this->pool->fill();
    }

    private function hasWaitingTasks(WorkerHandle $worker): bool
    {
        [$first, $second] = [$worker->batches[0], $worker->batches[1] ?? null];

        return ($second !== null && $second->limit > 0)
            || ($first->limit - $first->receivedCount > 1 && $first->limit > $worker->startedCount($first));
    }

    private function scheduleTimeCheck(WorkerHandle $worker, float $seconds): void
    {
        $worker->hasTimeoutTimer = true;
        $worker->timers['timeout'] = WeakTimer::after(
            max(0.001, $seconds),
            $this,
            static function (self $timeouts) use ($worker): void {
                $worker->hasTimeoutTimer = false;
                $timeouts->checkTime($worker, (float) $timeouts->timeout);
            },
        );
    }

    private function checkTime(WorkerHandle $worker, float $timeout): void
    {
        $batch = $worker->lastStartedTask()[0] ?? $worker->firstBatch();
        if ($batch === null || $worker->createKillFailure !== null) {
            return;
        }
        $since = max($batch->firstSince, $worker->batches[0]->firstSince);
        $left = null;
        if ($worker->sharedFlags !== null && $worker->sharedFlags->readMark()[0] === $batch->id) {
            $startedAt = $worker->sharedFlags->startedAt();
            $since = max($since, $startedAt);
            $left = $startedAt === 0 ? min($timeout, self::BETWEEN_TASKS_INTERVAL) : null;
        } elseif ($worker->sharedFlags === null && $worker->stream?->get()?->unreadCount > 0) {
            $left = min($timeout, self::BETWEEN_TASKS_INTERVAL);
        }
        $left ??= $timeout - (hrtime(true) - $since) / 1e9;
        if ($left > 0) {
            $this->scheduleTimeCheck($worker, $left);

            return;
        }
        $late = $worker->lastStartedTask();
        $this->takeBack($worker);
        if ($worker->lastStartedTask() !== $late) {
            $this->scheduleTimeCheck($worker, $timeout); // the task has ended, and the next one has started
            $this->pool->fill();

            return;
        }
        $worker->endingTask = $late;
        $worker->end(
            static fn(Batch $batch, int $index): \Throwable
                => TaskTimeoutException::after($timeout, $batch->attempt, $batch->key($index)),
        );
        $this->pool->fill();
    }
}
