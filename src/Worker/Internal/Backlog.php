<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Worker\WorkerStartException;

/**
 * Queue of tasks that were taken back from a worker or wait for a retry. These tasks run before new tasks, in the order
 * in which they were added. The duration of add(), shift() and withdraw() depends on the number of their tasks, but not
 * on the length of the queue. So withdraw() leaves the task in its batch, because a removal would take longer in a
 * longer queue. The queue skips the task when it becomes the first one.
 */
final class Backlog
{
    /** @var \SplQueue<Batch> */
    private \SplQueue $batches;

    /** Index of the first waiting task in the first batch. */
    private int $offset = 0;

    /** @var array<int, positive-int> number of waiting tasks, by the {@see spl_object_id()} of the batch; never 0 */
    private array $waiting = [];

    /** @var array<int, array{Batch, int, string|null}> batch, index and retry timer of each submission, by object id */
    private array $positions = [];

    /** @var array<string, Batch> by timer: batches whose retry has a delay */
    private array $delayed = [];

    public function __construct(private readonly PoolEvents $pool)
    {
        $this->batches = new \SplQueue();
    }

    /** Returns the number of batches in the queue, without batches whose retry delay has not ended. */
    public function batchCount(): int
    {
        return \count($this->waiting);
    }

    /** Returns the number of waiting tasks, including tasks whose retry delay has not ended. */
    public function taskCount(): int
    {
        return array_sum($this->waiting) + \count($this->delayed);
    }

    /** Returns whether the task with the number `$task` of a map waits for the end of a retry delay. */
    public function isDelayed(TaskSource $map, ?int $task): bool
    {
        $isMeant = static fn(Batch $batch): bool => $batch->source === $map && $batch->first === $task;

        return array_filter($this->delayed, $isMeant) !== [];
    }

    /** Takes up to `$maxTasks` tasks of the first batch that may run now. Gives earlier batches back to their maps. */
    public function shift(int $maxTasks): ?Batch
    {
        if ($this->waiting === []) {
            return null;
        }
        $this->returnBlocked();
        if ($this->batches->isEmpty()) {
            return null;
        }
        $batch = $this->batches->bottom();
        $count = \count($batch->tasks);
        $from = $to = $this->offset;
        $end = $maxTasks < $count - $from ? $from + $maxTasks : $count;
        if ($batch->tasks[$from] instanceof Submission) {
            for (; $to < $end && $this->isWaiting($batch->tasks[$to]); ++$to) {
                $this->forget($batch->tasks[$to]);
            }
        } else {
            $to = $end;
        }
        $this->offset = $to;
        $this->subtractWaiting($batch, $to - $from);

        return $to - $from === $count ? $batch : $batch->slice($from, $to);
    }

    /** Takes the task with the number `$task` of a map. Returns null if no waiting batch begins with this task. */
    public function shiftTask(TaskSource $map, int $task): ?Batch
    {
        foreach ($this->batches as $position => $batch) {
            $first = $batch->first + ($position === 0 ? $this->offset : 0);
            if ($batch->source !== $map || $first !== $task) {
                continue;
            }
            if ($position === 0) {
                return $this->shift(1);
            }
            $this->batches->offsetUnset($position);
            unset($this->waiting[spl_object_id($batch)]);
            $this->add($batch->slice(1, $batch->limit));

            return $batch->slice(0, 1);
        }

        return null;
    }

    /** Adds tasks to the queue. Cancelled tasks fail instead. Drops the tasks if their map() call was abandoned. */
    public function add(Batch $batch): void
    {
        if ($batch->tasks === [] || $batch->source->isAbandoned()) {
            return;
        }
        $cancelled = [];
        foreach ($batch->tasks[0] instanceof Submission ? $batch->tasks : [] as $index => $task) {
            /** @var Submission $task */
            if ($task->cancelled === null) {
                $this->positions[spl_object_id($task)] = [$batch, $index, null];
            } else {
                $cancelled[$index] = $task->cancelled;
            }
        }
        $waiting = \count($batch->tasks) - \count($cancelled);
        if ($waiting > 0) {
            $this->waiting[spl_object_id($batch)] = $waiting;
            $this->batches->enqueue($batch);
            $this->skipToWaiting();
        }
        foreach ($cancelled as $index => $reason) {
            $batch->source->failed($batch, $index, $reason);
        }
    }

    /**
     * Adds the tasks from index $from to $to - 1 of a batch, because the worker of the batch will not start them. If no
     * other worker may run these tasks, they fail instead.
     */
    public function requeue(Batch $batch, int $from, int $to): void
    {
        if (!$batch->isPinned) {
            $this->add($batch->slice($from, $to));

            return;
        }
        for ($index = $from; $index < $to; ++$index) {
            $batch->source->failed($batch, $index, WorkerStartException::otherCredentials());
        }
    }

    public function addDelayed(Batch $batch, float $delay): void
    {
        $timer = '';
        $timer = WeakTimer::after($delay, $this, static function (self $backlog) use (&$timer): void {
            $batch = $backlog->delayed[$timer];
            unset($backlog->delayed[$timer]);
            $backlog->add($batch);
            $backlog->pool->fill();
        });
        $this->delayed[$timer] = $batch;
        if ($batch->tasks[0] instanceof Submission) {
            $this->positions[spl_object_id($batch->tasks[0])] = [$batch, 0, $timer];
        }
    }

    /** Removes a task, which then fails with $reason. Returns false if the task is not in the backlog. */
    public function withdraw(Submission $submission, \Throwable $reason): bool
    {
        $id = spl_object_id($submission);
        if (!isset($this->positions[$id])) {
            return false;
        }
        [$batch, $index, $timer] = $this->positions[$id];
        unset($this->positions[$id]);
        if ($timer === null) {
            $this->subtractWaiting($batch, 1);
        } else {
            EventLoop::cancel($timer);
            unset($this->delayed[$timer]);
        }
        $batch->source->failed($batch, $index, $reason);

        return true;
    }

    public function drop(TaskSource $source): void
    {
        $batches = $this->batches;
        $this->batches = new \SplQueue();
        foreach ($batches as $number => $batch) {
            if ($batch->source !== $source) {
                $this->batches->enqueue($batch);
                continue;
            }
            unset($this->waiting[spl_object_id($batch)]);
            $this->offset = $number === 0 ? 0 : $this->offset;
        }
        $this->skipToWaiting();
        foreach ($this->delayed as $timer => $batch) {
            if ($batch->source === $source) {
                EventLoop::cancel($timer);
                unset($this->delayed[$timer]);
            }
        }
    }

    public function fail(\Throwable $reason): void
    {
        $tasks = [];
        foreach ([...$this->batches, ...array_values($this->delayed)] as $number => $batch) {
            foreach ($batch->tasks as $index => $task) {
                if (($number > 0 || $index >= $this->offset) && $this->isWaiting($task)) {
                    $tasks[] = [$batch, $index];
                }
            }
        }
        array_map(EventLoop::cancel(...), array_keys($this->delayed));
        $this->batches = new \SplQueue();
        $this->offset = 0;
        $this->waiting = $this->positions = $this->delayed = [];
        foreach ($tasks as [$batch, $index]) {
            $batch->source->failed($batch, $index, $reason);
        }
    }

    /** Gives batches back to their maps, until {@see MapRun::mayRun()} is true for the first batch of the queue. */
    private function returnBlocked(): void
    {
        while (!$this->batches->isEmpty()) {
            $batch = $this->batches->bottom();
            if (!$batch->source instanceof MapRun || $batch->source->mayRun($batch)) {
                return;
            }
            $count = \count($batch->tasks);
            $rest = $this->offset === 0 ? $batch : $batch->slice($this->offset, $count);
            $this->subtractWaiting($batch, $this->waiting[spl_object_id($batch)]);
            $batch->source->block($rest);
        }
    }

    private function subtractWaiting(Batch $batch, int $count): void
    {
        $remaining = $this->waiting[spl_object_id($batch)] - $count;
        if ($remaining > 0) {
            $this->waiting[spl_object_id($batch)] = $remaining;
        } else {
            unset($this->waiting[spl_object_id($batch)]);
        }
        $this->skipToWaiting();
    }

    private function skipToWaiting(): void
    {
        while (!$this->batches->isEmpty()) {
            $batch = $this->batches->bottom();
            if (isset($this->waiting[spl_object_id($batch)])) {
                while (!$this->isWaiting($batch->tasks[$this->offset])) {
                    ++$this->offset;
                }

                return;
            }
            $this->batches->dequeue();
            $this->offset = 0;
        }
    }

    private function forget(mixed $task): void
    {
        if ($task instanceof Submission) {
            unset($this->positions[spl_object_id($task)]);
        }
    }

    private function isWaiting(mixed $task): bool
    {
        return !$task instanceof Submission || isset($this->positions[spl_object_id($task)]);
    }
}
