<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\Cancellation;
use Revolt\EventLoop;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\OwnLoop;
use Spindle\Worker\ExecutorClosedException;

/**
 * Keeps track of a pool's open work: submitted tasks, running maps, streams of items, and calls of close(). Open work
 * keeps the event loop running. When all tasks of a closed pool have ended, the pool stops its workers. Each map is a
 * source of tasks. All submissions together are another source. The pool takes batches from all sources in rotation.
 */
final class PoolActivity
{
    /** @var array<int, self> instances with open work. Without this list, PHP could destroy the fibers that wait */
    private static array $busy = [];

    /** Seconds between two checks whether this process is a fork. A fork fails all tasks, as it gets no outcomes. */
    private const FORK_CHECK_INTERVAL = 0.5;

    /** @var array<int, TaskSource> submissions and running maps by id; the least recently served source is the first */
    private array $sources;

    /** Whether the pool object was destroyed while tasks were open. */
    private bool $isPoolDestroyed = false;

    /** Whether the pool refuses new tasks. Only this class writes this property. */
    public bool $isClosed = false;

    /** Whether {@see stopIfSettled()} has begun to stop the workers. */
    private bool $stopping = false;

    private bool $ended = false; // end() was called

    private bool $closing = false; // the workers stop after the last open task

    private readonly FiberQueue $fibersInClose;

    /** Timer that keeps the loop running while work is open, and notices that this process is a fork. */
    private ?string $loopTimer = null;

    /** Loop in which the pool was first used; null before. */
    private ?OwnLoop $loop = null;

    /** Whether $loopTimer is enabled. When the timer fires without open work, it is disabled. */
    private bool $isTimerEnabled = false;

    private readonly int $ownerPid;

    public function __construct(
        private readonly Workers $workers,
        private readonly Submissions $submissions,
        private readonly Backlog $backlog,
        private readonly OutcomeHandler $outcomes,
        private readonly TaskTimeouts $timeouts,
        private readonly PoolEvents $pool,
    ) {
        $this->ownerPid = (int) getmypid();
        $this->sources = [$submissions->id() => $submissions];
        $this->fibersInClose = new FiberQueue();
    }

    /** Returns whether EventLoop::setDriver() has replaced the loop that receives the outcomes. */
    public function isInOtherLoop(): bool
    {
        return $this->loop?->isCurrent() === false;
    }

    /** @throws ExecutorClosedException */
    public function mustBeOpen(): void
    {
        if ($this->isClosed) {
            throw ExecutorClosedException::closed();
        }
        if ($this->isInOtherLoop()) {
            throw ExecutorClosedException::inOtherLoop();
        }
    }

    public function add(MapRun $run): void
    {
        $this->sources[$run->id()] = $run;
        $this->updateLoopReference();
    }

    public function remove(MapRun $run): void
    {
        unset($this->sources[$run->id()]);
    }

    /** @param bool $quick whether to use only sources whose tasks take little time */
    public function next(int $maxTasks, int $workers, bool $quick): ?Batch
    {
        foreach ($this->sources as $id => $source) {
            if ($quick && !$source->sizing()->isQuick) {
                continue;
            }
            $batch = $source->take($maxTasks, $workers);
            if ($batch !== null) {
                if (\count($this->sources) > 1) {
                    unset($this->sources[$id]);
                    $this->sources[$id] = $source;
                }

                return $batch;
            }
        }

        return null;
    }

    /** Returns how many batches workers could get now; a very large number if the length of an input is unknown. */
    public function demand(): int
    {
        $demand = $this->backlog->batchCount();
        foreach ($this->sources as $source) {
            $demand = min(\PHP_INT_MAX >> 1, $demand + min(\PHP_INT_MAX >> 2, $source->demand()));
        }

        return $demand;
    }

    /** Ends all maps, and fails the submitted tasks that no worker has. */
    public function abort(\Throwable $reason): void
    {
        $this->backlog->fail($reason);
        foreach ($this->sources as $source) {
            $source->abort($reason);
        }
    }

    /**
     * Refuses new tasks, and waits until all accepted tasks have outcomes and the workers have stopped. A cancellation
     * ends only the wait. {@see TaskDispatcher::close()}, which calls this method, then kills the pool.
     */
    public function close(?Cancellation $cancellation): void
    {
        if (!$this->ended && $this->isInOtherLoop()) {
            throw ExecutorClosedException::inOtherLoop();
        }
        $this->isClosed = true;
        foreach ($this->sources as $source) {
            $source->close();
        }
        if ($this->ended) {
            return;
        }
        $this->closing = true;
        $this->updateLoopReference();
        $this->stopIfSettled();
        if (!$this->ended) {
            $this->fibersInClose->wait($cancellation);
        }
    }

    /** Called for a pool that PHP destroys. Refuses new tasks, and keeps this object alive until all tasks end. */
    public function closeForDestroyedPool(): void
    {
        $this->isClosed = $this->closing = $this->isPoolDestroyed = true;
        $this->updateLoopReference();
    }

    public function onSettled(): void
    {
        $this->updateLoopReference();
        $this->stopIfSettled();
    }

    public function updateLoopReference(): void
    {
        if ($this->ended || $this->isInOtherLoop()) {
            return;
        }
        if ($this->isBusy()) {
            $this->loop ??= new OwnLoop();
            $this->loopTimer ??= $this->createTimer();
            if (!$this->isTimerEnabled) {
                $this->isTimerEnabled = true;
                EventLoop::enable($this->loopTimer);
            }
            EventLoop::reference($this->loopTimer);
            self::$busy[spl_object_id($this)] = $this;
        } else {
            if ($this->loopTimer !== null) {
                EventLoop::unreference($this->loopTimer);
            }
            unset(self::$busy[spl_object_id($this)]);
        }
    }

    public function stopIfSettled(): void
    {
        $isSettled = $this->closing && $this->outcomes->openStreamCount === 0 && $this->isSettled();
        if (!$isSettled || $this->stopping) {
            return;
        }
        $this->stopping = true;
        if ($this->isPoolDestroyed) {
            $this->workers->close(true); // immediately, because the event loop may never run again
            $this->end();

            return;
        }
        $this->workers->stopAll(function (): void {
            $this->workers->close();
            $this->end();
        });
    }

    /** Called when all workers have ended, or in a fork. Makes calls of close() return, or throw `$failure` if set. */
    public function end(?ExecutorClosedException $failure = null): void
    {
        $this->isClosed = true;
        if ($this->ended) {
            return;
        }
        $this->ended = true;
        $this->loop?->cancel($this->loopTimer);
        if (!$this->isInOtherLoop()) {
            $this->timeouts->close();
        }
        unset(self::$busy[spl_object_id($this)]);
        $failure === null ? $this->fibersInClose->wakeAll() : $this->fibersInClose->failAll($failure);
    }

    public function isInFork(): bool
    {
        return $this->ownerPid !== getmypid();
    }

    private function isBusy(): bool
    {
        return $this->submissions->openCount > 0
            || \count($this->sources) > 1
            || $this->outcomes->openStreamCount > 0
            || $this->closing;
    }

    private function isSettled(): bool
    {
        foreach ($this->sources as $source) {
            if ($source instanceof MapRun && !$source->isSettled()) {
                return false;
            }
        }

        return $this->submissions->openCount === 0;
    }

    private function createTimer(): string
    {
        $weak = \WeakReference::create($this);

        return EventLoop::repeat(self::FORK_CHECK_INTERVAL, static function (string $timer) use ($weak): void {
            $activity = $weak->get();
            $activity === null ? EventLoop::cancel($timer) : $activity->tick($timer);
        });
    }

    private function tick(string $timer): void
    {
        if ($this->isInFork()) {
            $this->pool->failInFork();
        } elseif (!$this->isBusy()) {
            $this->isTimerEnabled = false;
            EventLoop::disable($timer);
        }
    }
}
