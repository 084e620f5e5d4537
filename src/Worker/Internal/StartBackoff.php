<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\LoopCallback;
use Spindle\Internal\WeakTimer;
use Spindle\Worker\WorkerStartException;

/** Counts workers that ended before they began a task. Decides when the pool gives up and fails the waiting tasks. */
final class StartBackoff
{
    /** The pool gives up after this many consecutive failures, each of which left the pool without a worker. */
    private const MAX_FAILURES = 5;

    /** After this many nanoseconds without a failure, a pool that has given up counts from 0 again. */
    private const FAILURE_MEMORY_NANOSECONDS = 10_000_000_000;

    /** Seconds from a failure to the next start of a worker, if the pool still has other workers. */
    private const RESTART_PAUSE_SECONDS = 0.5;

    /** {@see takeFailure()} returns no failure that is older than this many nanoseconds. */
    private const RECENT_NANOSECONDS = 1_000_000_000;

    /**
     * Number of failures that left the pool without a worker. {@see mayRetry()} counts them. The number is reset when a
     * worker becomes idle after a task, and when a ready worker ends that has begun a task or has no tasks.
     */
    public int $failureCount = 0;

    private int $failedAt = 0;

    private int $failedStartCount = 0;

    private int $startFailedAt = 0;

    /** Cause of the last failed start, if more starts in a row have failed than the pool has workers. */
    private ?WorkerStartException $failure = null;

    private ?string $timer = null;

    public function __construct(private readonly PoolEvents $pool) {}

    /** Counts a failure that left the pool without a worker. Returns whether to start another worker. */
    public function mayRetry(): bool
    {
        $now = (int) hrtime(true);
        if ($this->failureCount >= self::MAX_FAILURES && $now - $this->failedAt > self::FAILURE_MEMORY_NANOSECONDS) {
            $this->failureCount = 0;
        }
        $this->failedAt = $now;

        return ++$this->failureCount < self::MAX_FAILURES;
    }

    /** Counts a worker that did not start. Returns whether there were more than `$limit` in a row. */
    public function countFailedStart(int $limit, WorkerStartException $failure): bool
    {
        $this->failure = ++$this->failedStartCount > $limit ? $failure : null;
        $this->startFailedAt = hrtime(true);

        return $this->failure !== null;
    }

    public function workerBecameReady(): void
    {
        $this->failedStartCount = 0;
        $this->failure = null;
    }

    /** Returns the cause if too many starts in a row have failed, the last one just now. Then counts from 0 again. */
    public function takeFailure(): ?WorkerStartException
    {
        $failure = hrtime(true) - $this->startFailedAt < self::RECENT_NANOSECONDS ? $this->failure : null;
        if ($failure !== null) {
            $this->workerBecameReady();
        }

        return $failure;
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
        LoopCallback::cancel($this->timer);
    }
}
