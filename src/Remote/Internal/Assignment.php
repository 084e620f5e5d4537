<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\Delivery;

/** A job that an agent has, and the means to end it. */
final class Assignment
{
    /** Of a task that is a generator: items that were stored. */
    public int $items = 0;

    /** @var (\Closure(): void)|null wakes the one who waits for items to be taken */
    public ?\Closure $taken = null;

    /** Whether it has run for too long. */
    public bool $late = false;

    private readonly DeferredCancellation $cancellation;
    private ?string $timer = null;

    public function __construct(public readonly Delivery $delivery, public readonly TaskBody $body)
    {
        $this->cancellation = new DeferredCancellation();
    }

    /** 1 for the first; what was given back without having been started does not count. */
    public function attempt(): int
    {
        return $this->delivery->crashes + $this->delivery->fails + 1;
    }

    public function cancellation(): Cancellation
    {
        return $this->cancellation->getCancellation();
    }

    public function cancel(): void
    {
        $this->cancellation->cancel();
        if ($this->taken !== null) {
            ($this->taken)();
        }
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
