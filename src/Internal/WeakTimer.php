<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;

/** Timers that keep neither the loop nor their owner alive. */
final class WeakTimer
{
    /** Maximum of the loop, in seconds. */
    private const MAX_DELAY_SECONDS = 1e9;

    /**
     * Calls the callback once after a number of seconds, if the owner still exists then.
     *
     * @template T of object
     *
     * @param T                 $owner
     * @param \Closure(T): void $callback static, so that it does not refer to the owner
     *
     * @return string the timer's identifier in the loop
     */
    public static function after(float $seconds, object $owner, \Closure $callback): string
    {
        $weak = \WeakReference::create($owner);

        return EventLoop::unreference(EventLoop::delay(
            max(0.0, min($seconds, self::MAX_DELAY_SECONDS)),
            static function () use ($weak, $callback): void {
                $owner = $weak->get();
                if ($owner !== null) {
                    $callback($owner);
                }
            },
        ));
    }
}
