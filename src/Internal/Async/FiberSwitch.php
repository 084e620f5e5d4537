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
    /** @var \Fiber<mixed, mixed, mixed, mixed>|null a fiber that only suspends itself; one resumption takes 0.1 µs */
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
            // When the process ends, PHP destroys the probe before it calls the last destructors. A destroyed probe
            // can't be resumed, although PHP can switch fibers.
            if (self::$probe?->isTerminated() !== true) {
                return $blocked;
            }
            self::$probe = null;

            return self::obstacle();
        }

        return null;
    }

    /**
     * Suspends the current fiber for a turn of the event loop. Returns the exception if PHP can't suspend the fiber.
     * Unlike {@see obstacle()}, detects that PHP is destroying the fiber: such a fiber can resume other fibers, but
     * cannot be suspended.
     */
    public static function obstacleToSuspension(): ?CannotWaitException
    {
        try {
            LoopTurn::await();
        } catch (CannotWaitException $impossible) {
            return $impossible;
        }

        return null;
    }

    /**
     * Waits until a future is complete, and ignores a failure. Returns immediately if PHP can't suspend the caller.
     *
     * Cancellation: ends the wait, and throws no exception.
     *
     * @param Future<mixed> $future
     */
    public static function awaitIfPossible(Future $future, ?Cancellation $cancellation = null): void
    {
        try {
            self::await($future, $cancellation);
        } catch (CancelledException|CannotWaitException) {
            // The future is completed later, if the event loop runs.
        }
    }

    /**
     * Waits until a future is complete, and ignores its result or failure. Replaces Future::await(): after that method
     * could not suspend its caller, later waits of {main} or the event loop would fail.
     *
     * @param Future<mixed> $future
     *
     * @throws CancelledException|CannotWaitException
     */
    public static function await(Future $future, ?Cancellation $cancellation = null): void
    {
        if (!$future->isComplete()) {
            $completed = new Condition();
            $future->finally($completed->notify(...))->ignore();
            $completed->wait($cancellation);
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
