<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\CannotWaitException;

/**
 * A condition variable for one fiber: the fiber waits for a notification, and then checks its condition again.
 * If no fiber is waiting, a notification is lost.
 */
final class Condition
{
    /** @var array<int, object> the $owner of each running {@see wait()}, by id of the suspension */
    private static array $owners = [];

    /** @var Suspension<null>|null the waiting fiber, until it is notified */
    private ?Suspension $suspension = null;

    /** Returns whether a fiber is waiting and has not been notified yet. */
    public function isAwaited(): bool
    {
        return $this->suspension !== null;
    }

    /**
     * Suspends the fiber until the next notification. In {main}, runs the event loop until then.
     *
     * @param object|null $owner object that is kept in memory while the fiber waits. Otherwise PHP could destroy the
     *     suspended fiber, together with the objects to which only the fiber refers
     *
     * @throws CannotWaitException when PHP can't suspend the caller; in this case, the event loop has not run
     * @throws \Throwable the exception that {@see fail()} was called with, or the exception of the cancellation
     */
    public function wait(?Cancellation $cancellation = null, ?object $owner = null): void
    {
        try {
            $suspension = $this->suspension = EventLoop::getSuspension();
        } catch (\AssertionError $inLoop) {
            // A handler of pcntl_signal() may run in the event loop's own fiber. There, Revolt's getSuspension() fails
            // an assertion. If assertions are off, suspend() below fails instead.
            throw CannotWaitException::because(FiberSwitch::obstacle() ?? throw $inLoop);
        }
        $subscription = $cancellation?->subscribe($this->fail(...));
        if ($owner !== null) {
            self::$owners[spl_object_id($suspension)] = $owner;
        }
        try {
            $suspension->suspend();
        } catch (\FiberError $blocked) {
            throw CannotWaitException::because($blocked);
        } finally {
            if ($owner !== null) {
                unset(self::$owners[spl_object_id($suspension)]);
            }
            if ($this->suspension === $suspension) {
                $this->suspension = null; // the wait ended by an exception from the event loop, not by notify()
            }
            $cancellation?->unsubscribe((string) $subscription);
        }
    }

    /**
     * Suspends the fiber until the next notification, but at most for a number of seconds.
     *
     * @throws CannotWaitException|CancelledException
     */
    public function waitFor(float $seconds, ?Cancellation $cancellation = null): void
    {
        $loop = EventLoop::getDriver();
        $timer = $loop->delay($seconds, fn() => $this->notify());
        try {
            $this->wait($cancellation);
        } finally {
            $loop->cancel($timer);
        }
    }

    /** Resumes the waiting fiber, if there is one, as soon as the current callback of the event loop has returned. */
    public function notify(): void
    {
        $suspension = $this->suspension;
        $this->suspension = null;
        $suspension?->resume();
    }

    /** Makes {@see wait()} throw in the waiting fiber, if there is one. */
    public function fail(\Throwable $reason): void
    {
        $suspension = $this->suspension;
        $this->suspension = null;
        $suspension?->throw($reason);
    }
}
