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
 * The pool gets it as the task's cancellation and subscribes to it while the task runs. So the assignment knows when
 * the task is over, whatever became of the task's items.
 */
final class ClaimedJob implements Cancellation
{
    /** Seconds that a generator has to reach its next item and end there, once no more items are wanted. */
    private const GENERATOR_END_TIMEOUT = 1.0;

    /** Number of stored items of a generator; null for other tasks. */
    public ?int $items = null;

    /** Whether the task has exceeded its time limit. */
    public bool $late = false;

    /** Whether the task was ended so that another agent runs it. */
    public bool $isGivenBack = false;

    private readonly DeferredCancellation $cancellation;
    private ?string $timer = null;
    private bool $watched = false;

    /** Whether {@see tell()} was called since the last {@see awaitNews()}. */
    private bool $told = false;

    /** @var Suspension<null>|null */
    private ?Suspension $reader = null;

    /** @var Suspension<null>|null */
    private ?Suspension $over = null;

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
        return $this->delivery->crashes + $this->delivery->fails + 1;
    }

    /** Whether a reader may have seen items, so that the task must not run again. */
    public function hasItems(): bool
    {
        return ($this->items ?? 0) > 0;
    }

    public function subscribe(\Closure $callback): string
    {
        $this->watched = true;

        return $this->cancellation->getCancellation()->subscribe($callback);
    }

    public function unsubscribe(string $id): void
    {
        $this->watched = false;
        $this->cancellation->getCancellation()->unsubscribe($id);
        $this->over?->resume();
        $this->over = null;
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
    public function awaitOver(): void
    {
        if ($this->watched) {
            $this->over = EventLoop::getSuspension();
            $timer = EventLoop::delay(self::GENERATOR_END_TIMEOUT, $this->cancel(...));
            $this->over->suspend();
            EventLoop::cancel($timer);
        }
    }

    public function cancel(): void
    {
        $this->cancellation->cancel();
        $this->tell();
    }

    public function giveBack(): void
    {
        if (!$this->cancellation->isCancelled()) {
            $this->isGivenBack = true;
            $this->cancel();
        }
    }

    /** Wakes {@see awaitNews()}: items were taken, or no more are wanted. */
    public function tell(): void
    {
        $this->told = true;
        $reader = $this->reader;
        $this->reader = null;
        $reader?->resume();
    }

    /** Waits until {@see tell()} is called, or was called since the last wait; at most $seconds. */
    public function awaitNews(float $seconds): void
    {
        if (!$this->told) {
            $this->reader = EventLoop::getSuspension();
            $timer = EventLoop::delay($seconds, $this->tell(...));
            $this->reader->suspend();
            EventLoop::cancel($timer);
        }
        $this->told = false;
    }

    /** Starts the time limit, because the task runs now. */
    public function started(): void
    {
        if ($this->body->timeout !== null && $this->timer === null) {
            $this->timer = WeakTimer::after($this->body->timeout, $this, static function (self $job): void {
                $job->late = true;
                $job->cancel();
            });
        }
    }

    public function ended(): void
    {
        if ($this->timer !== null) {
            EventLoop::cancel($this->timer);
        }
    }
}
