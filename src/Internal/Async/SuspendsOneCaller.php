<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\OutputBuffers;

/**
 * Suspends one caller at a time: a fiber, or {main}. Each SQL statement waits in this way, so the wait must be cheap.
 * Therefore, this is a trait, which needs no additional object. And a fiber is suspended without a Suspension of the
 * event loop: the creation of a Suspension would take as long as all other work for a short statement.
 */
trait SuspendsOneCaller
{
    /** @var \Fiber<mixed, mixed, mixed, mixed>|null the waiting fiber; null if no fiber waits */
    private ?\Fiber $fiber = null;

    /** @var Suspension<null>|null set while {main} is waiting */
    private ?Suspension $main = null;

    /** @throws CannotWaitException when the caller can not be suspended, such as in a destructor before PHP 8.4 */
    public function wait(): void
    {
        $this->fiber = \Fiber::getCurrent();
        if ($this->fiber === null) {
            $this->main = EventLoop::getSuspension();
        }
        try {
            if ($this->main !== null) {
                $this->main->suspend();
            } elseif (OutputBuffers::$sharedLevel === null || ob_get_level() <= OutputBuffers::$sharedLevel) {
                \Fiber::suspend();
            } else {
                OutputBuffers::keepApartDuring(\Fiber::suspend(...));
            }
        } catch (\FiberError $blocked) {
            throw CannotWaitException::because($blocked);
        } finally {
            // The wait can end without wake(): by an exception from the event loop, or when the fiber is destroyed.
            $this->fiber = $this->main = null;
        }
    }

    /**
     * Ends the wait, if a caller is waiting. A fiber is resumed before this method returns. {main} continues
     * when the current callback of the event loop has returned. Must not be called in a destructor, because no fiber
     * can be resumed there before PHP 8.4.
     */
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
