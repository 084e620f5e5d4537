<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;

/** Sets timers that do not keep the event loop running, and do not prevent the destruction of their owner. */
final class WeakTimer
{
    /**
     * Calls the callback once after a number of seconds, if the owner still exists then.
     *
     * @template T of object
     *
     * @param T                 $owner
     * @param \Closure(T): void $callback static, so that it does not refer to the owner
     *
     * @return string callback id of the timer
     */
    public static function after(float $seconds, object $owner, \Closure $callback): string
    {
        $weak = \WeakReference::create($owner);

        return EventLoop::unreference(EventLoop::delay(
            max(0.0, min($seconds, NumberRange::MAX_SECONDS)),
            static function () use ($weak, $callback): void {
                $owner = $weak->get();
                if ($owner !== null) {
                    $callback($owner);
                }
            },
        ));
    }
}
