<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\GarbageCycles;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\WeakTimer;

/** Fibers that wait for a session, in order of arrival. Queries that share sessions may overtake exclusive waiters. */
final class WaitQueue
{
    /** @var array<int, self> queues with waiters. Without this reference, PHP could destroy a queue with waiters */
    private static array $keptAlive = [];

    /**
     * Maximum seconds between two checks whether a session was lent. If none was lent, the queue collects reference
     * cycles: an unread stream in a cycle keeps its session. While all fibers wait, PHP itself collects no cycles.
     */
    private const COLLECT_INTERVAL = 1.0;

    /** Waiters that need an exclusive session, and waiters that can share one. Only this class changes these lists. */
    public readonly WaitingFibers $exclusive;
    public readonly WaitingFibers $sharing;

    /** Timer for the waiter that times out next. One timer is enough, as waiters time out in the order of arrival. */
    private ?string $timer = null;

    private readonly OwnLoop $loop;

    /** Start of the wait that {@see $timer} limits, by hrtime(). */
    private int $timerSince = 0;

    /** {@see PoolCounters::$acquired} when {@see $timer} was started. */
    private int $acquiredAtStart = 0;

    /** Number of all waiters, for which the event loop keeps running. Only this class writes the property. */
    public int $count = 0;

    /**
     * @param float $timeout maximum seconds of a wait
     * @param \Closure(): \Throwable $onTimeout returns the exception for a waiter that has timed out
     * @param \Closure(): void $onWaiterFailed called after waiters have failed
     */
    public function __construct(
        private readonly PoolCounters $counts,
        private readonly float $timeout,
        private readonly \Closure $onTimeout,
        private readonly \Closure $onWaiterFailed,
    ) {
        $this->loop = new OwnLoop();
        $this->exclusive = new WaitingFibers();
        $this->sharing = new WaitingFibers();
    }

    public function __destruct()
    {
        $this->loop->cancel($this->timer);
    }

    public function add(WaitingFiber $waiter): void
    {
        ($waiter->isExclusive ? $this->exclusive : $this->sharing)->add($waiter);
        if (++$this->count === 1) {
            self::$keptAlive[spl_object_id($this)] = $this;
            if ($this->timer !== null) {
                EventLoop::reference($this->timer);
            }
        }
        if ($this->timer === null || $waiter->since < $this->timerSince) {
            $this->startTimer($waiter->since);
        }
    }

    /** Suspends until the pool has lent a session to the waiter, or the waiter has failed. */
    public function wait(WaitingFiber $waiter, ?Cancellation $cancellation): void
    {
        $subscription = $cancellation?->subscribe(function (CancelledException $reason) use ($waiter): void {
            if ($this->remove($waiter)) {
                $waiter->failure = $reason;
                EventLoop::queue($waiter->exchange->wake(...));
                ($this->onWaiterFailed)();
            }
        });
        try {
            $waiter->exchange->wait();
        } finally {
            $cancellation?->unsubscribe((string) $subscription);
        }
    }

    /** @return bool whether the waiter was still in the queue */
    public function remove(WaitingFiber $waiter): bool
    {
        if (!($waiter->isExclusive ? $this->exclusive : $this->sharing)->remove($waiter)) {
            return false;
        }
        if (--$this->count === 0) {
            unset(self::$keptAlive[spl_object_id($this)]);
            if ($this->timer !== null) {
                EventLoop::unreference($this->timer);
            }
        }

        return true;
    }

    /**
     * Returns the waiter that gets the session next; null when there is none. Does not remove the waiter. A free
     * session is for the waiter that came first. A session in use is only for a waiter that can share it.
     */
    public function next(PooledSession $pooled): ?WaitingFiber
    {
        $sharing = $this->sharing->first();
        if ($pooled->borrowers > 0) {
            return $sharing !== null && $pooled->answersSoon($sharing->cost) ? $sharing : null;
        }
        $exclusive = $this->exclusive->first();

        return $exclusive !== null && ($sharing === null || $exclusive->since < $sharing->since)
            ? $exclusive
            : $sharing;
    }

    public function failAll(\Throwable $reason): void
    {
        foreach ([$this->exclusive, $this->sharing] as $waiters) {
            while (($waiter = $waiters->first()) !== null) {
                $this->fail($waiter, $reason);
            }
        }
        ($this->onWaiterFailed)();
    }

    private function fail(WaitingFiber $waiter, \Throwable $reason): void
    {
        $this->remove($waiter);
        $waiter->failure = $reason;
        EventLoop::queue($waiter->exchange->wake(...));
    }

    private function startTimer(int $since, bool $keepsLoopRunning = true): void
    {
        $this->loop->cancel($this->timer);
        $this->timerSince = $since;
        $this->acquiredAtStart = $this->counts->acquired;
        $seconds = min($this->timeout - (hrtime(true) - $since) / 1e9, $this->timeout / 2, self::COLLECT_INTERVAL);
        $this->timer = WeakTimer::after($seconds, $this, static fn(self $self) => $self->expire());
        if ($this->count > 0 && $keepsLoopRunning) {
            EventLoop::reference($this->timer);
        }
    }

    private function expire(): void
    {
        $this->timer = null;
        $hasCollected = $this->count > 0 && $this->counts->acquired === $this->acquiredAtStart;
        if ($hasCollected) {
            GarbageCycles::collect($this->timeout / 2);
        }
        $since = hrtime(true) - $this->timeout * 1e9;
        $next = null;
        foreach ([$this->exclusive, $this->sharing] as $waiters) {
            while (($waiter = $waiters->first()) !== null && $waiter->since <= $since) {
                ++$this->counts->timedOut;
                $this->fail($waiter, ($this->onTimeout)());
                ($this->onWaiterFailed)();
            }
            $next = min($next ?? \PHP_INT_MAX, $waiter->since ?? \PHP_INT_MAX);
        }
        if ($next !== \PHP_INT_MAX) {
            // Without a time limit, the timer lets the event loop end if nothing can end a wait. Then Revolt throws.
            $this->startTimer($next, $this->timeout < 1e9 || !$hasCollected);
        }
    }
}
