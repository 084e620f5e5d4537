<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;

/** Callbacks of the event loop that belong to the process which has created them. A fork inherits them. */
final class OwnCallback
{
    /** Returns a callback that calls another one in this process, and {@see handOver()} in a fork. */
    public static function of(\Closure $callback): \Closure
    {
        $pid = getmypid();

        return static function (string $id = '') use ($callback, $pid): void {
            getmypid() === $pid ? $callback() : self::handOver($id);
        };
    }

    /** Kills this fork unless it has its own server. Leaves the events of a callback to the parent process. */
    public static function handOver(string $id): void
    {
        EventLoop::disable($id);
        Service::killIfAnyForked();
    }
}
