<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\Delivery;

/**
 * A job that an agent has claimed, and the means to end it.
 *
 * The pool gets it as the task's cancellation and subscribes to it while the task runs. So this job knows when the
 * task is over, whatever happened to the task's items.
 */
final class ClaimedJob implements Cancellation
{
    /** Seconds that a generator has to reach its next item and end there, once no more items are wanted. */
    private const GENERATOR_END_TIMEOUT = 1.0;

    /** Number of stored items of a generator; null for other tasks. */
    public ?int $items = null;

    /** Whether the task has exceeded its time limit. */
    public bool $isTimedOut = false;

    /** Whether the task was ended so that another agent runs it. */
    public bool $isGivenBack = false;

    private readonly DeferredCancellation $cancellation;
    private ?string $timeLimit = null;
    private bool $isRunning = false;

    /** Whether {@see notify()} was called since the last {@see awaitNotification()}. */
    private bool $isNotified = false;

    /** @var Suspension<null>|null */
    private ?Suspension $waiter = null;

    /** @var Suspension<null>|null */
    private ?Suspension $endWaiter = null;

    /** @param int $number of the claim, among those of the owner */
    public function __construct(
        public readonly Delivery $delivery,
        public readonly TaskBody $body,
        public readonly int $number,
    ) {
        $this->cancellation = new DeferredCancellation();
    }

    /** Returns the number of this attempt, 1 for the first. Claims that were given back do not count. */
    public function attempt(): int
    {
        return $this->delivery->crashes + $this->delivery->failures + 1;
    }

    /** Whether a reader may have seen items, so that the task must not run again. */
    public function hasItems(): bool
    {
        return ($this->items ?? 0) > 0;
    }

    public function subscribe(\Closure $callback): string
    {
        $this->isRunning = true;

        return $this->cancellation->getCancellation()->subscribe($callback);
    }

    public function unsubscribe(string $id): void
    {
        $this->isRunning = false;
        $this->cancellation->getCancellation()->unsubscribe($id);
        $this->endWaiter?->resume();
        $this->endWaiter = null;
    }

    public function isRequested(): bool
    {
        return $this->cancellation->isCancelled();
    }

    public function throwIfRequested(): void
    {
        $this->cancellation->getCancellation()->throwIfRequested();
    }

    /** Waits until the task has ended. Cancels a generator that does not end by itself in time. */
    public function awaitEnd(): void
    {
        if ($this->isRunning) {
            $this->endWaiter = EventLoop::getSuspension();
            $timer = EventLoop::delay(self::GENERATOR_END_TIMEOUT, $this->cancel(...));
            $this->endWaiter->suspend();
            EventLoop::cancel($timer);
        }
    }

    public function cancel(): void
    {
        $this->cancellation->cancel();
        $this->notify();
    }

    public function giveBack(): void
    {
        if (!$this->cancellation->isCancelled()) {
            $this->isGivenBack = true;
            $this->cancel();
        }
    }

    /** Wakes {@see awaitNotification()}: items were taken, or no more are wanted. */
    public function notify(): void
    {
        $this->isNotified = true;
        $waiter = $this->waiter;
        $this->waiter = null;
        $waiter?->resume();
    }

    /** Waits until {@see notify()} is called, or was called since the last wait; at most $seconds. */
    public function awaitNotification(float $seconds): void
    {
        if (!$this->isNotified) {
            $this->waiter = EventLoop::getSuspension();
            $timer = EventLoop::delay($seconds, $this->notify(...));
            $this->waiter->suspend();
            EventLoop::cancel($timer);
        }
        $this->isNotified = false;
    }

    /** Starts the time limit, because the task runs now. */
    public function startTimeLimit(): void
    {
        if ($this->body->timeout !== null && $this->timeLimit === null) {
            $this->timeLimit = WeakTimer::after($this->body->timeout, $this, static function (self $job): void {
                $job->isTimedOut = true;
                $job->cancel();
            });
        }
    }

    public function stopTimeLimit(): void
    {
        if ($this->timeLimit !== null) {
            EventLoop::cancel($this->timeLimit);
        }
    }
}
