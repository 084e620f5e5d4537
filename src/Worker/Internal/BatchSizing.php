<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/**
 * Computes from the durations of tasks how many tasks to put into a batch. A batch should take about 1 ms. This is long
 * compared to the cost of sending a batch, but too short for a noticeable delay of results. The typical duration is a
 * moving average of logarithms, so that rare long tasks have little influence. {@see TaskTimeouts} takes back tasks
 * that wait behind a long task of the same worker.
 */
final class BatchSizing
{
    private const TARGET_BATCH_NANOSECONDS = 1_000_000;

    private const MAX_BATCH_TASKS = 4096;
    private const MAX_GROWTH_FACTOR = 8;

    /** Until this many batches have finished, a worker sends each result separately. */
    private const MIN_LEARNT_BATCHES = 8;

    /** A worker sends each result separately if the size of a batch is at most this number of tasks. */
    private const MAX_EAGER_TASKS = 16;

    /** If a typical task takes this many nanoseconds or more, a worker has only one batch at a time. */
    private const QUICK_TASK_NANOSECONDS = 5_000_000;

    /** Logarithm of the nanoseconds that a typical task takes. */
    private ?float $typicalLogarithm = null;

    /** Largest size of the next batch: MAX_GROWTH_FACTOR times the size of the largest finished batch. */
    private int $maxSize = 1;
    public int $size = 1;

    /** Set if a worker should get its next batch before it has finished the current one. */
    public bool $isQuick = false;
    private int $batchCount = 0;

    /** Learns from a batch of $count tasks. They took $elapsed ns together, and the longest one took $longest ns. */
    public function learn(int $count, int $elapsed, int $longest): void
    {
        if ($count === 0) {
            return;
        }
        ++$this->batchCount;
        $each = log(max(1, $count > 1 ? ($elapsed - $longest) / ($count - 1) : $elapsed));
        $this->typicalLogarithm = $this->typicalLogarithm === null ? $each : ($this->typicalLogarithm + $each) / 2;
        $typical = exp($this->typicalLogarithm);
        $this->maxSize = min(self::MAX_BATCH_TASKS, max($this->maxSize, $count * self::MAX_GROWTH_FACTOR));
        $this->size = max(1, min($this->maxSize, (int) (self::TARGET_BATCH_NANOSECONDS / $typical)));
        $this->isQuick = $typical < self::QUICK_TASK_NANOSECONDS;
    }

    /** Returns whether each result should be sent separately, because durations are still unknown or tasks are slow. */
    public function isEager(): bool
    {
        return $this->batchCount < self::MIN_LEARNT_BATCHES || $this->size <= self::MAX_EAGER_TASKS;
    }
}
