<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;

/**
 * Fibers that wait for a session of a pool, in order of arrival. There is one exception: queries that can share a
 * session in use may overtake borrowers that need a session alone.
 */
final class WaitQueue
{
    /** @var array<int, self> queues with waiters, kept alive here because nothing else may reference them */
    private static array $keptAlive = [];

    /** Waiters that need a session alone, and waiters that can share one. Only this class adds and removes. */
    public readonly WaitingFibers $exclusive;
    public readonly WaitingFibers $sharing;

    private int $lastSequence = 0;

    /** Timer that ends waits that take too long. One is enough, since waiters are in order. */
    private ?string $timer = null;

    /** Whether there are waiters, so that the event loop must keep running. Only this class writes it. */
    public bool $keepsLoopRunning = false;

    /**
     * @param float                  $timeout longest wait, in seconds
     * @param \Closure(): \Throwable $onTimeout    returns the exception for a waiter that waited longer
     * @param \Closure(): void       $onLeft    called when a waiter left without a session
     */
    public function __construct(
        private readonly Counts $counts,
        private readonly float $timeout,
        private readonly \Closure $onTimeout,
        private readonly \Closure $onLeft,
    ) {
        $this->exclusive = new WaitingFibers();
        $this->sharing = new WaitingFibers();
    }

    public function __destruct()
    {
        if ($this->timer !== null) {
            EventLoop::cancel($this->timer);
        }
    }

    public function count(): int
    {
        return $this->exclusive->count + $this->sharing->count;
    }

    public function add(WaitingFiber $waiter): void
    {
        $waiter->sequence = ++$this->lastSequence;
        ($waiter->isExclusive ? $this->exclusive : $this->sharing)->add($waiter);
        if (!$this->keepsLoopRunning) {
            $this->keepsLoopRunning = true;
            self::$keptAlive[spl_object_id($this)] = $this;
            $this->timer === null ? $this->watch($this->timeout) : EventLoop::reference($this->timer);
        }
    }

    /** Suspends until a session was lent to the waiter, which counts it then, or its statement was answered. */
    public function wait(WaitingFiber $waiter, ?Cancellation $cancellation): void
    {
        $subscription = $cancellation?->subscribe(function (CancelledException $reason) use ($waiter): void {
            if ($this->remove($waiter)) {
                $waiter->failure = $reason;
                EventLoop::queue($waiter->exchange->wake(...));
                ($this->onLeft)();
            }
        });
        try {
            $waiter->exchange->wait();
        } finally {
            if ($cancellation !== null) {
                $cancellation->unsubscribe((string) $subscription);
            }
        }
        if ($waiter->failure !== null) {
            throw $waiter->failure;
        }
    }

    /** @return bool whether the waiter was still in the queue */
    public function remove(WaitingFiber $waiter): bool
    {
        if (!($waiter->isExclusive ? $this->exclusive : $this->sharing)->remove($waiter)) {
            return false;
        }
        if ($this->exclusive->count + $this->sharing->count === 0) {
            $this->release();
        }

        return true;
    }

    /** Returns the next waiter for a session. One in use goes to waiters that share, a free one to the first of all. */
    public function next(PooledSession $pooled): ?WaitingFiber
    {
        $sharing = $this->sharing->first();
        if ($pooled->borrowers > 0) {
            return $sharing !== null && $pooled->answersSoon($sharing->cost) ? $sharing : null;
        }
        $exclusive = $this->exclusive->first();

        return $exclusive !== null && ($sharing === null || $exclusive->sequence < $sharing->sequence)
            ? $exclusive
            : $sharing;
    }

    /** Fails all waiters. */
    public function refuse(\Throwable $reason): void
    {
        foreach ([$this->exclusive, $this->sharing] as $waiters) {
            while (($waiter = $waiters->first()) !== null) {
                $this->fail($waiter, $reason);
            }
        }
        ($this->onLeft)();
    }

    private function fail(WaitingFiber $waiter, \Throwable $reason): void
    {
        $this->remove($waiter);
        $waiter->failure = $reason;
        EventLoop::queue($waiter->exchange->wake(...));
    }

    /** Lets the event loop end although the timer is running. */
    private function release(): void
    {
        $this->keepsLoopRunning = false;
        unset(self::$keptAlive[spl_object_id($this)]);
        if ($this->timer !== null) {
            EventLoop::unreference($this->timer);
        }
    }

    private function watch(float $seconds): void
    {
        if ($this->timeout < 1e9) {
            $this->timer = WeakTimer::after($seconds, $this, static fn(self $self) => $self->expire());
            if ($this->keepsLoopRunning) {
                EventLoop::reference($this->timer);
            }
        }
    }

    private function expire(): void
    {
        $this->timer = null;
        $since = hrtime(true) - (int) ($this->timeout * 1e9);
        $next = null;
        foreach ([$this->exclusive, $this->sharing] as $waiters) {
            while (($waiter = $waiters->first()) !== null && $waiter->since <= $since) {
                ++$this->counts->timedOut;
                $this->fail($waiter, ($this->onTimeout)());
                ($this->onLeft)();
            }
            $next = min($next ?? \PHP_INT_MAX, $waiter->since ?? \PHP_INT_MAX);
        }
        if ($next !== \PHP_INT_MAX) {
            $this->watch(($next - $since) / 1e9);
        }
    }
}
