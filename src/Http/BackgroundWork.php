<?php

declare(strict_types=1);

namespace Spindle\Http;

use Revolt\EventLoop;
use Spindle\Internal\Async\FiberQueue;

/**
 * Runs functions of a handler that may continue after the response. A server that is closed, or whose process is
 * replaced, waits for these functions until its `stopTimeout`. They are lost if the process crashes or is killed.
 */
final class BackgroundWork
{
    private static int $running = 0;

    /** @var array<int, \Closure(): void> called when no function is running any more, by id of the server */
    private static array $waiting = [];

    private function __construct() {}

    /**
     * Starts a function in a fiber of its own, as soon as the current fiber suspends or the handler has returned. The
     * server logs an exception of the function. Under {@see Sapi}, the script runs the function after the response.
     *
     * @param \Closure(): mixed $work
     */
    public static function start(\Closure $work): void
    {
        ++self::$running;
        EventLoop::queue(static function () use ($work): void {
            try {
                $work();
            } finally {
                if (--self::$running === 0) {
                    array_map(static fn(\Closure $notify) => $notify(), self::$waiting);
                }
            }
        });
    }

    /** @internal Returns how many functions have not returned. */
    public static function running(): int
    {
        return self::$running;
    }

    /** @internal */
    public static function onEnd(object $owner, ?\Closure $notify): void
    {
        if ($notify === null) {
            unset(self::$waiting[spl_object_id($owner)]);
        } else {
            self::$waiting[spl_object_id($owner)] = $notify;
        }
    }

    /** @internal Suspends until all functions have returned. */
    public static function awaitEnd(): void
    {
        if (self::$running > 0) {
            $end = new FiberQueue();
            self::onEnd($end, $end->wakeAll(...));
            $end->wait();
            self::onEnd($end, null);
        }
    }
}
