<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\OutputBuffers;

/**
 * Suspends one caller at a time. A trait, for another object would be another for each statement.
 *
 * A fiber waits without a Suspension of the loop, which costs as much as all the rest of a short statement.
 */
trait OneWaiter
{
    /** @var \Fiber<mixed, mixed, mixed, mixed>|null of who waits */
    private ?\Fiber $fiber = null;

    /** @var Suspension<null>|null of {main}, if that waits */
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
        } catch (\FiberError $blocked) {
            throw CannotWaitException::because($blocked);
        } finally {
            // Not resumed where the loop was left by an exception, or the fiber is destroyed.
            $this->fiber = $this->main = null;
        }
    }

    /** Suspends the caller's fiber, and keeps its output buffers to it. */
    private static function suspendFiber(): void
    {
        $buffers = OutputBuffers::$shared === null ? [] : OutputBuffers::setAside();
        if ($buffers === []) {
            \Fiber::suspend();

            return;
        }
        // Without finally, which would run too when the fiber is destroyed, on the stack of whatever runs then.
        try {
            \Fiber::suspend();
        } catch (\Throwable $failure) {
            OutputBuffers::restore($buffers);
            throw $failure;
        }
        OutputBuffers::restore($buffers);
    }

    /** Whoever waits runs at once, up to where it suspends again. Not for a destructor, in which no fiber can be resumed. */
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
