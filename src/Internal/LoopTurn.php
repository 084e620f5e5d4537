<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;

/** Lets the event loop run once. */
final class LoopTurn
{
    /** @throws CannotWaitException where PHP can't switch fibers */
    public static function await(): void
    {
        $suspension = EventLoop::getSuspension();
        $callbackId = EventLoop::defer(static fn() => $suspension->resume());
        try {
            Fibers::suspend($suspension);
        } finally {
            EventLoop::cancel($callbackId);
        }
    }
}
