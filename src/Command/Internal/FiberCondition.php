<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Fibers;

/** A condition variable of the event loop, for one fiber, which waits while its condition does not hold. */
final class FiberCondition
{
    /** @var Suspension<mixed>|null */
    private ?Suspension $waiting = null;

    /**
     * Waits for the next notification. Earlier notifications are not kept.
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

    /** Resumes the fiber that waits, if there is one. */
    public function notify(): void
    {
        $waiting = $this->waiting;
        $this->waiting = null;
        $waiting?->resume();
    }
}
