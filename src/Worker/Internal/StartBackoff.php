<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;

/** Counts workers that ended before they began a task, and decides when the pool gives up. */
final class StartBackoff
{
    /** Number of consecutive failures, each of which left the pool without a worker, after which the pool gives up. */
    private const MAX_FAILURES = 5;

    /** Nanoseconds after the pool has given up in which a single failure is enough to give up again. */
    private const FAILURE_MEMORY_NANOSECONDS = 10_000_000_000;

    /** Seconds until another worker is started while others work. */
    private const RESTART_PAUSE_SECONDS = 0.5;

    /** Number of failures that left the pool without a worker, since a worker has begun a task. */
    public int $failureCount = 0;

    /** Time of the last failure, in nanoseconds of {@see hrtime()}. */
    private int $failedAt = 0;

    /** Number of workers that did not become ready, since one has. */
    public int $failedStartCount = 0;

    private ?string $timer = null;

    public function __construct(private readonly PoolEvents $pool) {}

    /** Counts a failure that left the pool without a worker. Returns whether to start another one. */
    public function mayRetry(): bool
    {
        $now = (int) hrtime(true);
        if ($this->failureCount >= self::MAX_FAILURES && $now - $this->failedAt > self::FAILURE_MEMORY_NANOSECONDS) {
            $this->failureCount = 0;
        }
        $this->failedAt = $now;

        return ++$this->failureCount < self::MAX_FAILURES;
    }

    /** Counts a worker that did not become ready. Returns whether more than `$limit` have failed in a row. */
    public function countFailedStart(int $limit): bool
    {
        return ++$this->failedStartCount > $limit;
    }

    public function isPaused(): bool
    {
        return $this->timer !== null;
    }

    public function pause(): void
    {
        $this->timer ??= WeakTimer::after(self::RESTART_PAUSE_SECONDS, $this, static function (self $backoff): void {
            $backoff->timer = null;
            $backoff->pool->fill();
        });
    }

    public function endPause(): void
    {
        if ($this->timer !== null) {
            EventLoop::cancel($this->timer);
            $this->timer = null;
        }
    }
}
