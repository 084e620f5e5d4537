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
        try {
            (new \Fiber($callback))->start();
        } catch (\Throwable $failure) {
            EventLoop::queue(static fn() => throw $failure);
        }
    }
}
