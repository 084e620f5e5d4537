<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;

/** Workers that ended before they began a task: when the pool starts another one, and when it gives up. */
final class Setbacks
{
    /** How often in a row the pool may be left without a worker before it gives up. */
    private const MAX_FAILURES = 5;

    /** After it gave up, a single failure is enough for this long, in nanoseconds. */
    private const MEMORY = 10_000_000_000;

    /** Seconds until another worker is started, while others work. */
    private const PAUSE = 0.5;

    private int $failures = 0;

    /** When the last of them was, in nanoseconds of {@see hrtime()}. */
    private int $failedAt = 0;

    /** Workers in a row that were started and did not become ready. */
    private int $failedStarts = 0;

    private ?string $pausing = null;

    /** @param \Closure(): void $over called when a pause is */
    public function __construct(private readonly \Closure $over) {}

    /** Some worker has begun a task. */
    public function areOver(): void
    {
        $this->failures = 0;
    }

    /**
     * Counts a failure that left the pool without any worker. Returns whether to start others for the tasks that wait.
     */
    public function mayTryAgain(): bool
    {
        $now = (int) hrtime(true);
        if ($this->failures >= self::MAX_FAILURES && $now - $this->failedAt > self::MEMORY) {
            $this->failures = 0;
        }
        $this->failedAt = $now;

        return ++$this->failures < self::MAX_FAILURES;
    }

    /** Some worker has become ready. */
    public function oneIsReady(): void
    {
        $this->failedStarts = 0;
    }

    /**
     * Counts a worker that did not become ready. Returns whether more than so many failed in a row, so that the others
     * that are being started are not waited for.
     */
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
        $this->pausing ??= WeakTimer::after(self::PAUSE, $this, static function (self $setbacks): void {
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
