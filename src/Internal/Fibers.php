<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop\Suspension;

/** Suspends the caller's fiber, and explains it if PHP can't. */
final class Fibers
{
    /**
     * Suspends the caller until the suspension is resumed, and returns the value that it is resumed with.
     *
     * When this throws {@see CannotWaitException}, the event loop has not run. What the caller registered before is
     * still as it was.
     *
     * @template T
     *
     * @param Suspension<T> $suspension
     *
     * @return T
     *
     * @throws CannotWaitException
     */
    public static function suspend(Suspension $suspension): mixed
    {
        try {
            return $suspension->suspend();
        } catch (\FiberError $blocked) {
            throw CannotWaitException::because($blocked);
        }
    }
}
