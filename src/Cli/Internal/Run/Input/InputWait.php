<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Revolt\EventLoop;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\Async\LoopTurn;

/**
 * Lets the fibers that read the input wait for readable bytes, a point in time or a condition. After each wake(), each
 * fiber checks whether its wait is over. After {@see stop()}, each wait ends immediately, and the input ends.
 */
final class InputWait
{
    /** Nanoseconds after which a fiber that reads a file lets the event loop run. */
    private const TURN_INTERVAL = 50_000_000;

    private bool $stopped = false;

    private int $nextTurn = 0;

    /** @var (\Closure(): void)|null */
    private ?\Closure $onStop = null;

    private readonly FiberQueue $changed;

    public function __construct()
    {
        $this->changed = new FiberQueue();
    }

    public function isStopped(): bool
    {
        return $this->stopped;
    }

    public function stop(): void
    {
        $this->stopped = true;
        $this->wake();
        if ($this->onStop !== null) {
            ($this->onStop)();
        }
    }

    /** @param \Closure(): void $onStop called by {@see stop()} */
    public function onStop(\Closure $onStop): void
    {
        $this->onStop = $onStop;
    }

    public function wake(): void
    {
        $this->changed->wakeAll();
    }

    /** Lets the event loop run if this method has not done so for 50 ms, so that signals and timers are handled. */
    public function letLoopRun(): void
    {
        if (hrtime(true) >= $this->nextTurn) {
            LoopTurn::await();
            $this->nextTurn = hrtime(true) + self::TURN_INTERVAL;
        }
    }

    /** @param \Closure(): bool $condition checked first, and after each {@see wake()} */
    public function until(\Closure $condition): void
    {
        while (!$this->stopped && !$condition()) {
            $this->changed->wait();
        }
    }

    /** @param int $time point in time, in nanoseconds of hrtime() */
    public function untilTime(int $time): void
    {
        $seconds = ($time - hrtime(true)) / 1e9;
        if ($seconds <= 0) {
            return;
        }
        $isReached = false;
        $timer = EventLoop::delay($seconds, function () use (&$isReached): void {
            $isReached = true;
            $this->wake();
        });
        $this->until(static function () use (&$isReached): bool {
            return $isReached;
        });
        EventLoop::cancel($timer);
    }

    /** @param resource $stream a file, or a stream at its end, is always readable */
    public function untilReadable(mixed $stream): void
    {
        $readable = false;
        $watcher = EventLoop::onReadable($stream, function (string $watcher) use (&$readable): void {
            EventLoop::disable($watcher);
            $readable = true;
            $this->wake();
        });
        $this->until(static function () use (&$readable): bool {
            return $readable;
        });
        EventLoop::cancel($watcher);
    }
}
