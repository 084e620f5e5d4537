<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;

/** Runs a caller's callback, which may throw or suspend without an effect on the code that calls it. */
final class IsolatedCall
{
    /** @param \Closure(): mixed $callback exceptions reach the loop's error handler */
    public static function call(\Closure $callback): void
    {
        $fiber = new \Fiber($callback);
        try {
            $fiber->start();
        } catch (\Throwable $failure) {
            // A destructor that the garbage collector calls cannot switch fibers before PHP 8.4.
            $fiber->isStarted() ? self::reportLater($failure) : self::callHere($callback);
        }
    }

    /** @param \Closure(): mixed $callback */
    private static function callHere(\Closure $callback): void
    {
        try {
            $callback();
        } catch (\Throwable $failure) {
            self::reportLater($failure);
        }
    }

    private static function reportLater(\Throwable $failure): void
    {
        EventLoop::queue(static fn() => throw $failure);
    }
}
