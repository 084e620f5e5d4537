<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\OutputBuffers;

/**
 * Suspends one caller at a time. This is a trait because another object per statement would cost time. A fiber waits
 * without a Suspension of the event loop, which would cost as much as all the rest of a short statement.
 */
trait OneWaiter
{
    /** @var \Fiber<mixed, mixed, mixed, mixed>|null the fiber that waits */
    private ?\Fiber $fiber = null;

    /** @var Suspension<null>|null suspension of {main}, if that waits */
    private ?Suspension $main = null;

    /**
     * Suspends the caller until {@see wake()} is called.
     *
     * @throws CannotWaitException
     */
    public function wait(): void
    {
        $this->fiber = \Fiber::getCurrent();
        if ($this->fiber === null) {
            $this->main = EventLoop::getSuspension();
        }
        try {
            $this->main === null ? self::suspendFiber() : $this->main->suspend();
        } catch (\FiberError $blocked) { // also of a fiber without a Suspension
            throw CannotWaitException::because($blocked);
        } finally {
            // Also reached without wake(): after an exception left the loop, or when the fiber is destroyed.
            $this->fiber = $this->main = null;
        }
    }

    /** Suspends the caller's fiber, and keeps its output buffers separate from those of other fibers. */
    private static function suspendFiber(): void
    {
        $buffers = OutputBuffers::$shared === null ? [] : OutputBuffers::setAside();
        if ($buffers === []) {
            \Fiber::suspend();

            return;
        }
        // Without finally, which would also run when the fiber is destroyed, on the stack of other code.
        try {
            \Fiber::suspend();
        } catch (\Throwable $failure) {
            OutputBuffers::restore($buffers);
            throw $failure;
        }
        OutputBuffers::restore($buffers);
    }

    /** Resumes the waiting caller at once. Not for destructors, in which no fiber can be resumed. */
    public function wake(): void
    {
        if ($this->fiber !== null) {
            $fiber = $this->fiber;
            $this->fiber = null;
            try {
                $fiber->resume();
            } catch (\Throwable $failure) {
                EventLoop::queue(static fn() => throw $failure);
            }
        } elseif ($this->main !== null) {
            $main = $this->main;
            $this->main = null;
            $main->resume();
        }
    }
}
