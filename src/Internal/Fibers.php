<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop\Suspension;

/** Suspends fibers, and throws an exception with an explanation where PHP can't suspend. */
final class Fibers
{
    /**
     * If this method throws {@see CannotWaitException}, the event loop has not run, and no callback was called.
     *
     * @template T
     *
     * @param Suspension<T> $suspension
     *
     * @return T
     *
     * @throws CannotWaitException where PHP can't switch fibers
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
