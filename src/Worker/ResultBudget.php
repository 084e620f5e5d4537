<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\Internal\Async\Condition;
use Spindle\Internal\LoopCallback;
use Spindle\Internal\NotCopyable;
use Spindle\Internal\WeakTimer;

/**
 * Limits the bytes of large results that this process receives at one time: {@see WorkerPoolOptions::$resultBudget}.
 *
 * If more than 64 KiB of a worker's result are unread, the pool reads these bytes only when they fit into the rest of
 * the budget. While no part of the budget is used, a result of any size fits. The bytes count as used until the pool
 * has received the result. An item of a generator task counts until the caller takes it, if it has at least 1 MiB.
 * An application can count bytes for longer with {@see forceAcquire()}.
 */
final class ResultBudget
{
    use NotCopyable;

    /**
     * If no bytes are released for this many seconds, the next reservation is granted although it does not fit.
     * Otherwise, a worker that is suspended (SIGSTOP) while it sends a result would block all other results.
     */
    private const RELEASE_TIMEOUT = 5.0;

    private int $used = 0;

    /** @var \SplQueue<array{int, \Closure(): bool}> waiting reservations: arguments of {@see reserve()} */
    private \SplQueue $waiting;

    private ?string $timer = null;

    public function __construct(public readonly int $maxBytes)
    {
        $this->waiting = new \SplQueue();
    }

    public function __destruct()
    {
        LoopCallback::cancel($this->timer);
    }

    /** Returns whether the budget is used up. If so, the next large result waits. */
    public function isFull(): bool
    {
        return $this->used >= $this->maxBytes;
    }

    /** Counts bytes as used, even if they exceed the budget. Reservations then wait until enough bytes are released. */
    public function forceAcquire(int $bytes): void
    {
        $this->used += $bytes;
    }

    public function release(int $bytes): void
    {
        $this->used -= $bytes;
        LoopCallback::cancel($this->timer);
        $this->admitFitting();
        $this->startTimer();
    }

    /**
     * Counts bytes as used: now if they fit and no earlier reservation is waiting, otherwise later.
     *
     * @param \Closure(): bool $later called when the bytes are counted later; returns whether they are still needed.
     *     If not, the budget releases them immediately
     *
     * @return bool whether the bytes were counted now
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

    /** Withdraws a waiting reservation: `$later` is never called. Later reservations that fit are granted now. */
    public function withdraw(\Closure $later): void
    {
        $waiting = $this->waiting;
        $this->waiting = new \SplQueue();
        foreach ($waiting as $reservation) {
            if ($reservation[1] !== $later) {
                $this->waiting->enqueue($reservation);
            }
        }
        $this->admitFitting();
        if ($this->waiting->isEmpty()) {
            LoopCallback::cancel($this->timer);
        }
    }

    /** Waits until there is room for these bytes, and counts them as used. The caller must {@see release()} them. */
    public function acquire(int $bytes): void
    {
        $added = new Condition();
        $later = static function () use ($added): bool {
            $isNeeded = $added->isAwaited();
            $added->notify();

            return $isNeeded;
        };
        if (!$this->reserve($bytes, $later)) {
            $added->wait();
        }
    }

    private function hasRoom(int $bytes): bool
    {
        return $this->used <= 0 || $this->used + $bytes <= $this->maxBytes;
    }

    private function admitFitting(): void
    {
        while (!$this->waiting->isEmpty() && $this->hasRoom($this->waiting->bottom()[0])) {
            $this->admit();
        }
    }

    /** @return bool whether the bytes of the next reservation are still needed */
    private function admit(): bool
    {
        [$bytes, $later] = $this->waiting->dequeue();
        $this->used += $bytes;
        $isNeeded = $later();
        $this->used -= $isNeeded ? 0 : $bytes;

        return $isNeeded;
    }

    private function startTimer(): void
    {
        if ($this->timer === null && !$this->waiting->isEmpty()) {
            $this->timer = WeakTimer::after(self::RELEASE_TIMEOUT, $this, static function (self $budget): void {
                $budget->timer = null;
                while (!$budget->waiting->isEmpty() && !$budget->admit());
                $budget->admitFitting();
                $budget->startTimer();
            });
        }
    }
}
