<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;

/**
 * Tasks, and what is to be done with the result of each: `Tasks::create()->add($task)->then($callback)->catch($callback)`.
 *
 * Nothing runs before {@see wait()}, which takes each task as it is then. Callbacks run in the fiber that waits, one after
 * the other, and may add tasks, which run as well.
 */
final class Tasks
{
    /** Tasks that the executor has at once: each costs a future, whereas one that waits costs its callable. */
    private const WINDOW = 1024;

    /** @var \SplQueue<Task<mixed>> */
    private \SplQueue $waiting;

    /** Tasks that the executor has. */
    private int $running = 0;

    /** @var \SplQueue<array{Task<mixed>, mixed, ?\Throwable}> with their results, or why they have none */
    private readonly \SplQueue $ended;

    /** @var Suspension<null>|null of the fiber that waits, while there is nothing to do in it */
    private ?Suspension $pause = null;
    private bool $underWay = false;

    /** @var list<\Throwable> */
    private array $failures = [];

    public function __construct(private readonly Executor $executor)
    {
        $this->waiting = new \SplQueue();
        $this->ended = new \SplQueue();
    }

    /**
     * With a pool of its own.
     *
     * @param int|null $workers at once; null for as many as there are usable CPUs
     *
     * @throws \ValueError when there are to be less than 1
     */
    public static function create(?int $workers = null): self
    {
        return new self(new WorkerPool($workers));
    }

    /**
     * @template T
     *
     * @param callable(): T $task
     *
     * @return Task<T> to say what is to be done with its result
     */
    public function add(callable $task): Task
    {
        $added = new Task($this, $task);
        $this->waiting->enqueue($added);

        return $added;
    }

    /**
     * Runs all tasks and their callbacks, and returns when there are no more. It may be called again then.
     *
     * A failure that meets no catch() stops nothing: when everything else is done, the first one is thrown, and
     * {@see failures()} has them all. So it is with an exception that a callback throws, if nothing catches it.
     *
     * Cancellation: tasks that run are ended, those that wait are dropped, all of them without a callback; then
     * CancelledException is thrown.
     *
     * @throws CancelledException
     * @throws \LogicException    when it is under way already
     * @throws \Throwable         the first failure that nothing has caught
     */
    public function wait(?Cancellation $cancellation = null): void
    {
        if ($this->underWay) {
            throw new \LogicException('These tasks are being waited for: what a callback adds runs without another wait()');
        }
        $this->underWay = true;
        $this->failures = [];
        try {
            while ($this->start($cancellation) > 0) {
                $this->ended->isEmpty() ? $this->pause() : $this->settle($cancellation);
            }
        } finally {
            $this->underWay = false;
        }
        $cancellation?->throwIfRequested();
        if ($this->failures !== []) {
            throw $this->failures[0];
        }
    }

    /** @return list<\Throwable> what the last wait() met and nothing has caught; it has thrown the first of them */
    public function failures(): array
    {
        return $this->failures;
    }

    /** @return int tasks without an outcome, or with one that waits for its callbacks */
    private function start(?Cancellation $cancellation): int
    {
        if ($cancellation?->isRequested() === true) {
            $this->waiting = new \SplQueue();
        }
        while ($this->running < self::WINDOW && !$this->waiting->isEmpty()) {
            $task = $this->waiting->dequeue();
            ++$this->running;
            try {
                $this->executor->submit($task->task, $cancellation)
                    ->map(fn(mixed $result) => $this->ended($task, $result, null))
                    ->catch(fn(\Throwable $failure) => $this->ended($task, null, $failure));
            } catch (\Throwable $refused) {
                $this->ended($task, null, $refused);
            }
        }

        return $this->running;
    }

    /** @param Task<mixed> $task */
    private function ended(Task $task, mixed $result, ?\Throwable $failure): void
    {
        $this->ended->enqueue([$task, $result, $failure]);
        $pause = $this->pause;
        $this->pause = null;
        $pause?->resume();
    }

    private function pause(): void
    {
        $this->pause = EventLoop::getSuspension();
        $this->pause->suspend();
    }

    private function settle(?Cancellation $cancellation): void
    {
        [$task, $result, $failure] = $this->ended->dequeue();
        --$this->running;
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
