<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;

/** Counts workers that ended before they began a task, and decides when the pool gives up. */
final class StartBackoff
{
    /** Consecutive failures that leave the pool without a worker, before it gives up. */
    private const MAX_FAILURES = 5;

    /** Nanoseconds after giving up in which a single failure is enough to give up again. */
    private const FAILURE_MEMORY_NANOSECONDS = 10_000_000_000;

    /** Seconds until another worker is started while others work. */
    private const RESTART_PAUSE_SECONDS = 0.5;

    private int $failures = 0;

    /** Time of the last failure, in nanoseconds of {@see hrtime()}. */
    private int $failedAt = 0;

    /** Consecutive workers that did not become ready. */
    private int $failedStarts = 0;

    private ?string $pausing = null;

    /** @param \Closure(): void $over called when a pause is over */
    public function __construct(private readonly \Closure $over) {}

    /** Resets the count of failures: a worker has begun a task. */
    public function areOver(): void
    {
        $this->failures = 0;
    }

    /** Counts a failure that left the pool without a worker. Returns whether to start another one. */
    public function mayTryAgain(): bool
    {
        $now = (int) hrtime(true);
        if ($this->failures >= self::MAX_FAILURES && $now - $this->failedAt > self::FAILURE_MEMORY_NANOSECONDS) {
            $this->failures = 0;
        }
        $this->failedAt = $now;

        return ++$this->failures < self::MAX_FAILURES;
    }

    /** Resets the count of failed starts. */
    public function oneIsReady(): void
    {
        $this->failedStarts = 0;
    }

    /** Counts a worker that did not become ready. Returns whether more than `$most` have failed in a row. */
    public function startFailed(int $most): bool
    {
        return ++$this->failedStarts > $most;
    }

    public function isPausing(): bool
    {
        return $this->pausing !== null;
    }

    public function pause(): void
    {
        $this->pausing ??= WeakTimer::after(self::RESTART_PAUSE_SECONDS, $this, static function (self $setbacks): void {
            $setbacks->pausing = null;
            ($setbacks->over)();
        });
    }

    public function endPause(): void
    {
        if ($this->pausing !== null) {
            EventLoop::cancel($this->pausing);
            $this->pausing = null;
        }
    }
}
