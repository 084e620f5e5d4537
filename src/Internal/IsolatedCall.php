<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;

/** Runs a callback of the application. If the callback throws or suspends, the calling code continues unaffected. */
final class IsolatedCall
{
    /** @param \Closure(): mixed $callback its exceptions are passed to the error handler of the event loop */
    public static function call(\Closure $callback): void
    {
        $fiber = new \Fiber($callback);
        try {
            $fiber->start();
        } catch (\Throwable $failure) {
            // PHP can't start a fiber in a handler of pcntl_signal(), or before PHP 8.4 in a destructor.
            $fiber->isStarted() ? self::reportLater($failure) : self::callHere($callback);
        }
    }

    /** @param \Closure(): mixed $callback runs in the current fiber, and must not suspend there */
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
