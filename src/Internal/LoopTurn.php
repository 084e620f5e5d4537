<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;

/** Waits for one turn of the event loop. */
final class LoopTurn
{
    /** @throws CannotWaitException */
    public static function await(): void
    {
        $suspension = EventLoop::getSuspension();
        $watcher = EventLoop::defer(static fn() => $suspension->resume());
        try {
            Fibers::suspend($suspension);
        } finally {
            EventLoop::cancel($watcher);
        }
    }
}
