<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Internal\Async\Condition;

/**
 * Tasks with callbacks for their outcomes: `TaskGroup::create()->add($task)->then($callback)->catch($callback)`.
 *
 * {@see wait()} serializes and runs the tasks; {@see add()} only stores them. Callbacks run one after the other in the
 * fiber that called wait(). A callback may add tasks; the same wait() call runs them.
 */
final class TaskGroup
{
    /** Maximum tasks that are submitted at the same time. A submitted task needs more memory than a waiting one. */
    private const MAX_RUNNING_TASKS = 1024;

    /** @var \SplQueue<Task<mixed>> */
    private \SplQueue $waiting;

    private int $runningCount = 0;

    /** @var \SplQueue<array{Task<mixed>, mixed, ?\Throwable}> ended tasks whose callbacks have not run */
    private readonly \SplQueue $ended;

    /** Notified when a task has ended. While no callback can run, {@see wait()} waits for this condition. */
    private readonly Condition $taskEnded;
    private bool $isRunning = false;

    /** @var list<\Throwable> */
    private array $failures = [];

    public function __construct(private readonly Executor $executor)
    {
        $this->waiting = new \SplQueue();
        $this->ended = new \SplQueue();
        $this->taskEnded = new Condition();
    }

    /**
     * Creates a group whose tasks run in a new pool.
     *
     * @param int|null $workers number of workers; null for the number of usable CPUs
     *
     * @throws \ValueError when $workers is below 1
     */
    public static function create(?int $workers = null): self
    {
        return new self(new WorkerPool($workers));
    }

    /**
     * Adds a task, which {@see wait()} runs.
     *
     * @template T
     *
     * @param callable(): T $task
     *
     * @return Task<T> the task, to which callbacks can be added
     */
    public function add(callable $task): Task
    {
        $added = new Task($this, $task);
        $this->waiting->enqueue($added);

        return $added;
    }

    /**
     * Runs all tasks and their callbacks, and returns when no task is left. Then the caller may add and run more tasks.
     *
     * A failure is unhandled if the task has no catch() callback, or if a catch() callback threw it. Unhandled failures
     * do not stop other tasks. After all tasks, wait() throws the first of them, and {@see failures()} returns all.
     *
     * Cancellation: ends running tasks and drops waiting tasks. Their callbacks do not run. Throws CancelledException.
     *
     * @throws CancelledException
     * @throws \LogicException    when the tasks are running already
     * @throws \Throwable         the first failure that no catch() callback handled
     */
    public function wait(?Cancellation $cancellation = null): void
    {
        if ($this->isRunning) {
            throw new \LogicException(
                'wait() is already running. A task that a callback adds runs without another wait()',
            );
        }
        $this->isRunning = true;
        $this->failures = [];
        try {
            while ($this->startTasks($cancellation) > 0) {
                $this->ended->isEmpty() ? $this->taskEnded->wait() : $this->runCallbacks($cancellation);
            }
        } finally {
            $this->isRunning = false;
        }
        $cancellation?->throwIfRequested();
        if ($this->failures !== []) {
            throw $this->failures[0];
        }
    }

    /** @return list<\Throwable> unhandled failures of the last wait(), which threw the first of them */
    public function failures(): array
    {
        return $this->failures;
    }

    /** @return int number of submitted tasks whose callbacks have not run */
    private function startTasks(?Cancellation $cancellation): int
    {
        if ($cancellation?->isRequested() === true) {
            $this->waiting = new \SplQueue();
        }
        while ($this->runningCount < self::MAX_RUNNING_TASKS && !$this->waiting->isEmpty()) {
            $task = $this->waiting->dequeue();
            ++$this->runningCount;
            try {
                $this->executor->submit($task->task, $cancellation)
                    ->map(fn(mixed $result) => $this->addEnded($task, $result, null))
                    ->catch(fn(\Throwable $failure) => $this->addEnded($task, null, $failure));
            } catch (\Throwable $refused) {
                $this->addEnded($task, null, $refused);
            }
        }

        return $this->runningCount;
    }

    /** @param Task<mixed> $task */
    private function addEnded(Task $task, mixed $result, ?\Throwable $failure): void
    {
        $this->ended->enqueue([$task, $result, $failure]);
        $this->taskEnded->notify();
    }

    private function runCallbacks(?Cancellation $cancellation): void
    {
        [$task, $result, $failure] = $this->ended->dequeue();
        --$this->runningCount;
        if ($failure instanceof CancelledException && $cancellation?->isRequested() === true) {
            return;
        }
        try {
            $task->settle($result, $failure);
        } catch (\Throwable $uncaught) {
            $this->failures[] = $uncaught;
        }
    }
}
