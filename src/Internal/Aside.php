<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;

/** Runs a caller's callback where it can do no harm: it may throw or suspend, and what called it goes on. */
final class Aside
{
    /** @param \Closure(): mixed $callback what it throws reaches the loop's error handler */
    public static function call(\Closure $callback): void
    {
        try {
            (new \Fiber($callback))->start();
        } catch (\Throwable $failure) {
            EventLoop::queue(static fn() => throw $failure);
        }
    }
}
