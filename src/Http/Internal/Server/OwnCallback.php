<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;

/** Creates callbacks of the event loop that run only in the process that created them, and not in its forks. */
final class OwnCallback
{
    /** Returns a callback that calls `$callback` in this process, and {@see leaveToParent()} in a fork. */
    public static function of(\Closure $callback): \Closure
    {
        $pid = getmypid();

        return static function (string $id = '') use ($callback, $pid): void {
            getmypid() === $pid ? $callback() : self::leaveToParent($id);
        };
    }

    /** Disables a callback of the parent process in this fork. Kills the fork unless it has its own server. */
    public static function leaveToParent(string $id): void
    {
        EventLoop::disable($id);
        Service::killIfAnyForked();
    }
}
