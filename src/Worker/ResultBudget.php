<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;

/**
 * Bounds the bytes of large results that are in this process at once: see {@see WorkerPoolOptions::$budget}.
 *
 * A pool reads a result of more than 64 KiB only when there is room for it. What the application does with results
 * counts too, if it says so by {@see occupy()}. One result is always let in, however large it is.
 */
final class ResultBudget
{
    /** Seconds without any change after which the next one is let in: a worker that was stopped may hold the room. */
    private const PATIENCE = 5.0;

    private int $used = 0;

    /** @var \SplQueue<array{int, \Closure(): bool}> bytes, and what reserves them; false when they are not needed any more */
    private \SplQueue $waiting;

    private ?string $timer = null;

    public function __construct(public readonly int $bytes)
    {
        $this->waiting = new \SplQueue();
    }

    /** Forbidden: a copy would share what the original owns. */
    private function __clone() {}

    public function __destruct()
    {
        $this->stopTimer();
    }

    /** Whether nothing large is let in at present. */
    public function isFull(): bool
    {
        return $this->used >= $this->bytes;
    }

    /** Adds bytes whether there is room or not. Others wait until they are released. */
    public function occupy(int $bytes): void
    {
        $this->used += $bytes;
    }

    public function release(int $bytes): void
    {
        $this->used -= $bytes;
        $this->stopTimer();
        while (!$this->waiting->isEmpty() && $this->hasRoom($this->waiting->bottom()[0])) {
            $this->admit();
        }
        $this->startTimer();
    }

    /**
     * Adds bytes if there is room.
     *
     * @param \Closure(): bool $later called when there is room, and the bytes were added; returns false when they are
     *                                not needed any more
     *
     * @return bool false when there is none now
     */
    public function reserve(int $bytes, \Closure $later): bool
    {
        if ($this->waiting->isEmpty() && $this->hasRoom($bytes)) {
            $this->used += $bytes;

            return true;
        }
        $this->waiting->enqueue([$bytes, $later]);
        $this->startTimer();

        return false;
    }

    /** Returns when the bytes were added. */
    public function await(int $bytes): void
    {
        $suspension = EventLoop::getSuspension();
        $later = static function () use ($suspension): bool {
            $suspension->resume();

            return true;
        };
        if (!$this->reserve($bytes, $later)) {
            $suspension->suspend();
        }
    }

    private function hasRoom(int $bytes): bool
    {
        return $this->used <= 0 || $this->used + $bytes <= $this->bytes;
    }

    private function admit(): void
    {
        [$bytes, $later] = $this->waiting->dequeue();
        $this->used += $bytes;
        if (!$later()) {
            $this->used -= $bytes;
        }
    }

    private function startTimer(): void
    {
        if ($this->timer === null && !$this->waiting->isEmpty()) {
            $this->timer = WeakTimer::after(self::PATIENCE, $this, static function (self $budget): void {
                $budget->timer = null;
                $budget->admit();
                $budget->startTimer();
            });
        }
    }

    private function stopTimer(): void
    {
        if ($this->timer !== null) {
            EventLoop::cancel($this->timer);
            $this->timer = null;
        }
    }
}
