<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Driver;

/**
 * The event loop of an object's callbacks. EventLoop::setDriver() may replace the loop. In the new loop, callbacks of
 * other code may have the same ids.
 */
final readonly class OwnLoop
{
    public const REPLACED = 'EventLoop::setDriver() has replaced the event loop in which it was opened';
    public const POOL_REFUSAL = 'EventLoop::setDriver() has replaced the event loop of this pool. Create another pool';

    /** @var \WeakReference<Driver> */
    private \WeakReference $loop;

    private int $ownerPid;

    public function __construct()
    {
        $this->loop = \WeakReference::create(EventLoop::getDriver());
        $this->ownerPid = (int) getmypid();
    }

    public function isCurrent(): bool
    {
        return $this->loop->get() === EventLoop::getDriver();
    }

    /** Cancels a callback of this loop. Does nothing in a fork with another loop: the parent may still use this one. */
    public function cancel(?string $id): void
    {
        if ($id !== null && ($this->ownerPid === getmypid() || $this->isCurrent())) {
            $this->loop->get()?->cancel($id);
        }
    }
}
