<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Amp\Cancellation;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\CannotWaitException;

/**
 * A condition variable for one fiber: the fiber waits for a notification, and then checks its condition again.
 * Notifications without a waiting fiber are lost.
 */
final class Condition
{
    /** @var array<int, object> objects that are kept in memory while a fiber waits, by id of the suspension */
    private static array $owners = [];

    /** @var Suspension<null>|null the waiting fiber, until it is notified */
    private ?Suspension $suspension = null;

    /** Returns whether a fiber waits that was not notified. */
    public function isAwaited(): bool
    {
        return $this->suspension !== null;
    }

    /**
     * Suspends the fiber until the next notification. In {main}, runs the event loop until then.
     *
     * @param object|null $owner kept in memory while the fiber waits. Without it, PHP could destroy the suspended fiber
     *     together with objects to which only the fiber refers
     *
     * @throws CannotWaitException where PHP can't suspend; then the event loop has not run
     * @throws \Throwable the reason of {@see fail()} or of the cancellation
     */
    public function wait(?Cancellation $cancellation = null, ?object $owner = null): void
    {
        $suspension = $this->suspension = EventLoop::getSuspension();
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
                $this->suspension = null; // no notification: an exception has left the event loop
            }
            if ($cancellation !== null) {
                $cancellation->unsubscribe((string) $subscription);
            }
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
