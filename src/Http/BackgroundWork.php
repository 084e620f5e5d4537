<?php

declare(strict_types=1);

namespace Spindle\Http;

use Amp\Cancellation;
use Revolt\EventLoop;
use Revolt\EventLoop\Driver;
use Spindle\Http\Internal\Server\LoopWork;
use Spindle\Http\Internal\Server\Service;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\GarbageCycles;

/**
 * Runs functions of a handler that may continue after the response. A server that is closed, or whose process is
 * replaced, waits for these functions as long as for requests. Functions are lost if the process crashes or is killed.
 */
final class BackgroundWork
{
    /** @var \WeakMap<Driver, LoopWork>|null */
    private static ?\WeakMap $loops = null;

    /** @var \WeakMap<object, LoopWork>|null state of a function's event loop, by the function's fiber */
    private static ?\WeakMap $fibers = null;

    private function __construct() {}

    /**
     * Starts a function in a fiber of its own, as soon as the current fiber suspends or the handler has returned. An
     * exception of the function goes to the error handler of the event loop. If the application has set none, the
     * exception is logged. But with {@see HttpServer::start()}, the event loop throws an UncaughtThrowable instead.
     * Under {@see Sapi}, the script sends the response and then waits for the function.
     *
     * @param \Closure(): mixed $work
     */
    public static function start(\Closure $work): void
    {
        $state = self::state();
        ++$state->running;
        EventLoop::queue(self::run(...), $work, $state);
    }

    /** @internal Returns how many functions of the current event loop have not returned, begun or not. */
    public static function running(): int
    {
        return self::state()->running;
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
        $state = self::state();
        $ended = $state->begun;
        foreach (self::$fibers ?? [] as $fiber => $ofFiber) {
            $ended -= $ofFiber === $state && $fiber instanceof \Fiber && !$fiber->isTerminated() ? 1 : 0;
        }

        return $ended;
    }

    /** @internal Sets the owner's function, called whenever the last running function has ended; null removes it. */
    public static function onEnd(object $owner, ?\Closure $notify): void
    {
        $state = self::state();
        if ($notify === null) {
            unset($state->waiting[spl_object_id($owner)]);
        } else {
            $state->waiting[spl_object_id($owner)] = $notify;
        }
    }

    /** @internal Suspends until all functions have returned. */
    public static function awaitEnd(?Cancellation $cancellation = null): void
    {
        if (self::running() > 0) {
            $end = new FiberQueue();
            self::onEnd($end, $end->wakeAll(...));
            try {
                $end->wait($cancellation);
            } finally {
                self::onEnd($end, null);
            }
        }
    }

    /** @internal Runs the event loop at the end of the script until all functions have returned or called exit(). */
    public static function runAtEnd(): void
    {
        $thrown = GarbageCycles::destroy(); // also destroys fibers that await a fiber which has called exit()
        $state = self::state();
        $ended = self::ended();
        [$state->running, $state->begun] = [$state->running - $ended, $state->begun - $ended];
        if ($state->running > 0) {
            $state->waiting = [EventLoop::getDriver()->stop(...)];
            try {
                EventLoop::run(); // after exit() in a fiber, {main} can't suspend, but can run the loop
            } catch (\Error $failure) { // the loop tried to resume {main} from a wait that exit() has ended
                EventLoop::run();
                $failure::class === \Error::class ? null : throw $failure; // thrown by the error handler of the loop
            }
        }
        $thrown === null ? null : throw $thrown;
    }

    private static function run(\Closure $work, LoopWork $state): void
    {
        if ($state->pid !== getmypid()) {
            Service::killIfAnyForked();

            return; // the parent process runs the function
        }
        Service::endBlockMeasurements();
        $fiber = \Fiber::getCurrent();
        \assert($fiber !== null);
        $fibers = self::$fibers ??= new \WeakMap();
        $fibers[$fiber] = $state;
        ++$state->begun;
        try {
            $work();
        } finally {
            $isFork = $state->pid !== getmypid();
            $isFork ? Service::killIfAnyForked() : Service::endBlockMeasurements();
            unset($fibers[$fiber]);
            --$state->begun;
            if (--$state->running === 0 && !$isFork) {
                array_map(static fn(\Closure $notify) => $notify(), $state->waiting);
            }
        }
    }

    private static function state(): LoopWork
    {
        $loops = self::$loops ??= new \WeakMap();
        $loop = EventLoop::getDriver();
        $pid = (int) getmypid();
        $state = $loops[$loop] ?? null;

        return $state?->pid === $pid ? $state : $loops[$loop] = new LoopWork($pid);
    }
}
