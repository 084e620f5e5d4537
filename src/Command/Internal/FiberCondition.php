<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Fibers;

/** A condition variable for one fiber: the fiber waits for a notification, and then checks its condition again. */
final class FiberCondition
{
    /** @var Suspension<mixed>|null */
    private ?Suspension $waiting = null;

    /**
     * Suspends the fiber until the next notification. Notifications without a waiting fiber are lost.
     *
     * @throws CannotWaitException
     */
    public function wait(): void
    {
        $this->waiting = EventLoop::getSuspension();
        try {
            Fibers::suspend($this->waiting);
        } finally {
            $this->waiting = null;
        }
    }

    public function notify(): void
    {
        $waiting = $this->waiting;
        $this->waiting = null;
        $waiting?->resume();
    }
}
