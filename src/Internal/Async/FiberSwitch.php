<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\Future;
use Spindle\Internal\CannotWaitException;

/** Checks whether PHP can switch fibers now, so that a call that must wait can fail before it has an effect. */
final class FiberSwitch
{
    /** @var \Fiber<mixed, mixed, mixed, mixed>|null a fiber that only suspends itself, which takes 0.1 µs */
    private static ?\Fiber $probe = null;

    /** @throws CannotWaitException in a handler of pcntl_signal(), or before PHP 8.4 in a destructor */
    public static function ensurePossible(): void
    {
        $blocked = self::obstacle();
        if ($blocked !== null) {
            throw CannotWaitException::before($blocked);
        }
    }

    /**
     * Does the same as {@see ensurePossible()}, but the message says that the call may have had an effect already.
     *
     * @throws CannotWaitException
     */
    public static function ensurePossibleAfterBegin(): void
    {
        $blocked = self::obstacle();
        if ($blocked !== null) {
            throw CannotWaitException::because($blocked);
        }
    }

    /** Returns the error that a switch would cause now; null if PHP can switch fibers. */
    public static function obstacle(): ?\FiberError
    {
        try {
            (self::$probe ?? self::start())->resume();
        } catch (\FiberError $blocked) {
            // When the process ends, PHP destroys the probe before it calls the last destructors.
            if (self::$probe?->isTerminated() !== true) {
                return $blocked;
            }
            self::$probe = null;

            return self::obstacle();
        }

        return null;
    }

    /**
     * Waits until a future is complete. Returns immediately if PHP can't suspend the caller. Ignores a failure.
     *
     * Cancellation: ends the wait, and throws no exception.
     *
     * @param Future<mixed> $future
     */
    public static function awaitIfPossible(Future $future, ?Cancellation $cancellation = null): void
    {
        if ($future->isComplete()) {
            return;
        }
        // Does not use Future::await(): if it can't suspend the caller, later waits of {main} fail too.
        $completed = new Condition();
        $future->finally($completed->notify(...))->ignore();
        try {
            $completed->wait($cancellation);
        } catch (CancelledException|CannotWaitException) {
            // The future is completed later, if the event loop runs.
        }
    }

    /** @return \Fiber<mixed, mixed, mixed, mixed> */
    private static function start(): \Fiber
    {
        $probe = new \Fiber(static function (): never {
            for (;;) {
                \Fiber::suspend();
            }
        });
        $probe->start();

        return self::$probe = $probe;
    }
}
