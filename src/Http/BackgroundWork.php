<?php

declare(strict_types=1);

namespace Spindle\Http;

use Revolt\EventLoop;
use Revolt\EventLoop\Driver;
use Spindle\Http\Internal\Server\Service;
use Spindle\Internal\Async\FiberQueue;

/**
 * Runs functions of a handler that may continue after the response. A server that is closed, or whose process is
 * replaced, waits for these functions as long as for requests. They are lost if the process crashes or is killed.
 */
final class BackgroundWork
{
    /** Process and event loop to which the other properties apply. They do not apply to forks or to another loop. */
    private static int $pid = 0;

    /** @var \WeakReference<Driver>|null */
    private static ?\WeakReference $loop = null;

    private static int $running = 0;

    /** Number of functions that have begun, but not returned. */
    private static int $begun = 0;

    /** @var \WeakMap<object, true>|null fibers of these functions */
    private static ?\WeakMap $fibers = null;

    /** @var array<int, \Closure(): void> called when no function is running any more, by id of the server */
    private static array $waiting = [];

    private function __construct() {}

    /**
     * Starts a function in a fiber of its own, as soon as the current fiber suspends or the handler has returned. An
     * exception of the function is logged. But after {@see HttpServer::start()}, it goes to the error handler of the
     * event loop. Under {@see Sapi}, the script runs the function after the response.
     *
     * @param \Closure(): mixed $work
     */
    public static function start(\Closure $work): void
    {
        self::forgetOthers();
        ++self::$running;
        EventLoop::queue(self::run(...), $work, self::$pid, self::$fibers);
    }

    /** @internal Returns how many functions have not returned. */
    public static function running(): int
    {
        self::forgetOthers();

        return self::$running;
    }

    /** @internal Returns whether the current fiber runs one of the functions. */
    public static function isCurrent(): bool
    {
        $fiber = \Fiber::getCurrent();

        return $fiber !== null && isset(self::$fibers[$fiber]);
    }

    /** @internal Returns how many functions were ended by exit() or a fatal error. */
    public static function ended(): int
    {
        $ended = self::$begun;
        foreach (self::$fibers ?? [] as $fiber => $_) {
            $ended -= $fiber instanceof \Fiber && !$fiber->isTerminated() ? 1 : 0;
        }

        return $ended;
    }

    /** @internal */
    public static function onEnd(object $owner, ?\Closure $notify): void
    {
        self::forgetOthers();
        if ($notify === null) {
            unset(self::$waiting[spl_object_id($owner)]);
        } else {
            self::$waiting[spl_object_id($owner)] = $notify;
        }
    }

    /** @internal Suspends until all functions have returned. */
    public static function awaitEnd(): void
    {
        if (self::running() > 0) {
            $end = new FiberQueue();
            self::onEnd($end, $end->wakeAll(...));
            $end->wait();
            self::onEnd($end, null);
        }
    }

    /** @internal Runs the event loop at the end of the script until all functions have returned or called exit(). */
    public static function runAtEnd(): void
    {
        self::$running -= self::ended();
        if (self::running() > 0) {
            self::$waiting = [EventLoop::getDriver()->stop(...)];
            try {
                EventLoop::run(); // if exit() was called in a fiber, no suspension of {main} is possible
            } catch (\Error) { // the loop has resumed the wait in {main} that exit() has ended
                EventLoop::run();
            }
        }
    }

    /** @param \WeakMap<object, true> $fibers value of the property when the function was counted */
    private static function run(\Closure $work, int $pid, \WeakMap $fibers): void
    {
        if ($pid !== getmypid()) {
            Service::killIfAnyForked();

            return; // the parent process runs the function
        }
        Service::handleWork();
        $fiber = \Fiber::getCurrent();
        \assert($fiber !== null);
        $fibers[$fiber] = true;
        self::$begun += $fibers === self::$fibers ? 1 : 0;
        try {
            $work();
        } finally {
            $isFork = $pid !== getmypid();
            $isFork ? Service::killIfAnyForked() : Service::handleWork();
            unset($fibers[$fiber]);
            if (!$isFork && $fibers === self::$fibers) {
                --self::$begun;
                if (--self::$running === 0) {
                    array_map(static fn(\Closure $notify) => $notify(), self::$waiting);
                }
            }
        }
    }

    private static function forgetOthers(): void
    {
        $loop = EventLoop::getDriver();
        if (self::$pid !== getmypid() || self::$loop?->get() !== $loop) {
            [self::$pid, self::$loop] = [(int) getmypid(), \WeakReference::create($loop)];
            [self::$running, self::$begun, self::$waiting] = [0, 0, []];
            self::$fibers = new \WeakMap();
        }
    }
}
