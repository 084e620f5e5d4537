<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\CannotWaitException;

/**
 * A condition variable of the event loop, for one fiber that waits: it looks at its condition, and waits while that does
 * not hold; whoever may have changed that notifies it.
 */
final class Condition
{
    /** @var Suspension<mixed>|null */
    private ?Suspension $waiting = null;

    /**
     * Returns at the next notification; those before are not kept.
     *
     * @throws CannotWaitException
     */
    public function wait(): void
    {
        $this->waiting = EventLoop::getSuspension();
        try {
            $this->waiting->suspend();
        } catch (\FiberError $blocked) {
            throw CannotWaitException::because($blocked);
        } finally {
            $this->waiting = null;
        }
    }

    /** Without effect while nobody waits. */
    public function notify(): void
    {
        $waiting = $this->waiting;
        $this->waiting = null;
        $waiting?->resume();
    }
}
