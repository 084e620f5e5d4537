<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;

/**
 * Suspends the fiber that reads the input until bytes arrive, a time is reached, or another condition is true. After
 * {@see stop()}, no wait suspends, and the input ends. After a wake-up, the fiber checks its condition again.
 */
final class InputWait
{
    private bool $stopped = false;

    private readonly Condition $changed;

    public function __construct()
    {
        $this->changed = new Condition();
    }

    public function isStopped(): bool
    {
        return $this->stopped;
    }

    public function stop(): void
    {
        $this->stopped = true;
        $this->wake();
    }

    public function wake(): void
    {
        $this->changed->notify();
    }

    /** @param \Closure(): bool $condition checked first, and after each {@see wake()} */
    public function until(\Closure $condition): void
    {
        while (!$this->stopped && !$condition()) {
            $this->changed->wait();
        }
    }

    /** @param int $time in nanoseconds of hrtime() */
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

    /** @param resource $stream counts as readable if it is a file or at its end */
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
