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
 * A job that an agent has, and the means to end it.
 *
 * It is the cancellation that the pool gets with the task: the pool watches it for as long as the task runs, so that
 * it knows when that is over, whatever became of the task's items.
 */
final class Assignment implements Cancellation
{
    /** Seconds that a generator has to come to its next item and end there, once nobody wants that. */
    private const LEFT = 1.0;

    /** Of a task that is a generator: items that were stored. */
    public ?int $items = null;

    /** Whether it has run for too long. */
    public bool $late = false;

    /** Whether it was ended to be given back. */
    public bool $isGivenBack = false;

    private readonly DeferredCancellation $cancellation;
    private ?string $timer = null;
    private bool $watched = false;

    /** Whether something was told of its items that nobody has looked at yet, and who waits for that. */
    private bool $told = false;

    /** @var Suspension<null>|null */
    private ?Suspension $reader = null;

    /** @var Suspension<null>|null */
    private ?Suspension $over = null;

    /** @param int $number of the claim, among those of its owner */
    public function __construct(public readonly Delivery $delivery, public readonly TaskBody $body, public readonly int $number)
    {
        $this->cancellation = new DeferredCancellation();
    }

    /** 1 for the first; what was given back without having been started does not count. */
    public function attempt(): int
    {
        return $this->delivery->crashes + $this->delivery->fails + 1;
    }

    /** Whether somebody may have seen a part of what it does, so that it is not to run again. */
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

    /** Returns when its task runs no more: one that nobody reads ends by itself, or is ended. */
    public function awaitOver(): void
    {
        if ($this->watched) {
            $this->over = EventLoop::getSuspension();
            $timer = EventLoop::delay(self::LEFT, $this->cancel(...));
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

    /** Some of its items were taken, or nobody wants more. */
    public function tell(): void
    {
        $this->told = true;
        $reader = $this->reader;
        $this->reader = null;
        $reader?->resume();
    }

    /** Returns when it is told, or was since this was called last; at the latest after so many seconds. */
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

    /** Its task runs now. */
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
