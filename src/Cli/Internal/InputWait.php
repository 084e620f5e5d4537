<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;

/**
 * Suspends the fiber that pulls the input: until bytes arrive, a time is reached, or there is room. After {@see stop()}
 * nothing waits, and the input ends. A wake-up is a hint: the waiting fiber checks its condition again.
 */
final class InputWait
{
    private bool $stopped = false;

    /** @var Suspension<mixed>|null */
    private ?Suspension $suspension = null;

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
        $suspension = $this->suspension;
        $this->suspension = null;
        $suspension?->resume();
    }

    /** @param \Closure(): bool $isOver */
    public function until(\Closure $isOver): void
    {
        while (!$this->stopped && !$isOver()) {
            $this->suspension = EventLoop::getSuspension();
            $this->suspension->suspend();
        }
    }

    /** @param int $time in nanoseconds of hrtime() */
    public function untilTime(int $time): void
    {
        $left = ($time - hrtime(true)) / 1e9;
        if ($left <= 0) {
            return;
        }
        $over = false;
        $timer = EventLoop::delay($left, function () use (&$over): void {
            $over = true;
            $this->wake();
        });
        $this->until(static function () use (&$over): bool {
            return $over;
        });
        EventLoop::cancel($timer);
    }

    /** @param resource $stream always readable if it is a file or has ended */
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
