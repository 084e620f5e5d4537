<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\Cancellation;
use Revolt\EventLoop;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Worker\ExecutorClosedException;

/**
 * Tracks open work in a pool: tasks without outcomes, items that are being read, and close(). Open work keeps the event
 * loop running. A closed pool without open work stops its workers.
 */
final class PoolActivity
{
    /** @var array<int, self> instances with open work: possibly nothing else refers to the fiber that waits for it */
    private static array $busy = [];

    /** Seconds after which a fork notices that outcomes of this pool will not arrive there. */
    private const FORK_CHECK_INTERVAL = 0.5;

    /** Whether the pool object was destroyed while tasks were open. */
    private bool $released = false;

    /** Whether the pool refuses tasks; whether its workers are stopping; whether they have ended. */
    private bool $closed = false;
    private bool $stopping = false;
    private bool $ended = false;

    /** Whether the workers stop as soon as no work is open. */
    private bool $closing = false;

    /** Callers of close(). */
    private readonly FiberQueue $waiting;

    /** Timer that keeps the loop running while it is referenced, and notices a fork of this process. */
    private readonly string $loopTimer;

    /** Whether the timer is enabled. It is disabled when it fires and nothing is open. */
    private bool $ticks = false;

    private readonly int $ownerPid;

    public function __construct(
        private readonly Workers $workers,
        private readonly TaskSources $sources,
        private readonly Results $results,
        private readonly TaskTimeouts $timeouts,
        private readonly PoolEvents $pool,
    ) {
        $this->ownerPid = (int) getmypid();
        $this->waiting = new FiberQueue();
        $weak = \WeakReference::create($this);
        $tick = static function (string $timer) use ($weak): void {
            $activity = $weak->get();
            $activity === null ? EventLoop::cancel($timer) : $activity->tick();
        };
        $timer = EventLoop::unreference(EventLoop::repeat(self::FORK_CHECK_INTERVAL, $tick));
        $this->loopTimer = EventLoop::disable($timer);
    }

    /** @return list<string> identifiers of the timers of all pools with open work, which must not be cancelled */
    public static function timers(): array
    {
        return array_values(array_map(static fn(self $activity): string => $activity->loopTimer, self::$busy));
    }

    public function isClosed(): bool
    {
        return $this->closed;
    }

    /**
     * Refuses new tasks, and waits until all accepted tasks have outcomes and the workers have stopped.
     *
     * Cancellation: ends only the wait.
     */
    public function close(?Cancellation $cancellation): void
    {
        $this->closed = true;
        $this->sources->close();
        if ($this->ended) {
            return;
        }
        $this->closing = true;
        $this->keepLoop();
        $this->stopIfSettled();
        if (!$this->ended) {
            $this->waiting->wait($cancellation);
        }
    }

    /** Refuses new tasks, and keeps this object alive until all accepted tasks have outcomes. */
    public function release(): void
    {
        $this->closed = true;
        $this->closing = true;
        $this->released = true;
        $this->keepLoop();
    }

    /** Called when a task got its outcome, or a stream of items began or ended. */
    public function onSettled(): void
    {
        $this->keepLoop();
        $this->stopIfSettled();
    }

    /** Keeps the event loop running as long as work is open. */
    public function keepLoop(): void
    {
        if ($this->ended) {
            return;
        }
        if ($this->isBusy()) {
            if (!$this->ticks) {
                $this->ticks = true;
                EventLoop::enable($this->loopTimer);
            }
            EventLoop::reference($this->loopTimer);
            self::$busy[spl_object_id($this)] = $this;
        } else {
            EventLoop::unreference($this->loopTimer);
            unset(self::$busy[spl_object_id($this)]);
        }
    }

    public function stopIfSettled(): void
    {
        $isSettled = $this->closing && $this->results->openStreamCount() === 0 && $this->sources->areSettled();
        if (!$isSettled || $this->stopping) {
            return;
        }
        $this->stopping = true;
        if ($this->released) {
            $this->workers->close(true); // now, because the loop possibly never runs again
            $this->end();

            return;
        }
        $this->workers->stopAll(function (): void {
            $this->workers->close();
            $this->end();
        });
    }

    /** Called when all workers have ended, or in a fork. Callers of close() get the failure, or continue. */
    public function end(?ExecutorClosedException $failure = null): void
    {
        $this->closed = true;
        if ($this->ended) {
            return;
        }
        $this->ended = true;
        EventLoop::cancel($this->loopTimer);
        $this->timeouts->close();
        unset(self::$busy[spl_object_id($this)]);
        $failure === null ? $this->waiting->wakeAll() : $this->waiting->failAll($failure);
    }

    private function isBusy(): bool
    {
        return $this->sources->areOpen() || $this->results->openStreamCount() > 0 || $this->closing;
    }

    private function tick(): void
    {
        if ($this->ownerPid !== getmypid()) {
            $this->pool->failInFork();
        } elseif (!$this->isBusy()) {
            $this->ticks = false;
            EventLoop::disable($this->loopTimer);
        }
    }
}
