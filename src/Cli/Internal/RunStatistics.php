<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** Progress of a run. */
final class RunStatistics
{
    public int $started = 0;
    public int $succeeded = 0;
    public int $failed = 0;

    /** Highest number of jobs that run at once. */
    public int $slots = \PHP_INT_MAX;

    /** Number of all jobs; null while it is not known. */
    public ?int $total = null;

    private readonly int $startedAt;

    /** @param \Closure(): int $clock like hrtime(true) */
    public function __construct(private readonly \Closure $clock)
    {
        $this->startedAt = $clock();
    }

    public function done(): int
    {
        return $this->succeeded + $this->failed;
    }

    public function running(): int
    {
        return min($this->started - $this->done(), $this->slots);
    }

    /** Subtracts a job from the total that the run leaves out. */
    public function skipJob(): void
    {
        $this->total = $this->total === null ? null : $this->total - 1;
    }

    /** Returns the seconds since the run began. */
    public function elapsed(): float
    {
        return (($this->clock)() - $this->startedAt) / 1e9;
    }

    /** Returns the finished jobs per second since the run began. */
    public function rate(): float
    {
        $elapsed = $this->elapsed();

        return $elapsed > 0 ? $this->done() / $elapsed : 0.0;
    }

    /** Returns the seconds until the end at the current rate; null while they can't be estimated. */
    public function remaining(): ?float
    {
        $rate = $this->rate();

        return $this->total === null || $rate <= 0 ? null : max(0, $this->total - $this->done()) / $rate;
    }
}
