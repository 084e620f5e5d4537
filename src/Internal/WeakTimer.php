<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;

/** Timers that keep neither the loop nor what they are about alive. */
final class WeakTimer
{
    /** Nobody waits for longer, and the loop could not count it, in seconds. */
    private const LONGEST = 1e9;

    /**
     * Calls it once, after so many seconds, unless the owner is gone by then.
     *
     * @template T of object
     *
     * @param T                 $owner
     * @param \Closure(T): void $callback static, for it must not hold the owner
     *
     * @return string the timer's identifier in the loop
     */
    public static function after(float $seconds, object $owner, \Closure $callback): string
    {
        $weak = \WeakReference::create($owner);

        return EventLoop::unreference(EventLoop::delay(max(0.0, min($seconds, self::LONGEST)), static function () use ($weak, $callback): void {
            $owner = $weak->get();
            if ($owner !== null) {
                $callback($owner);
            }
        }));
    }
}
