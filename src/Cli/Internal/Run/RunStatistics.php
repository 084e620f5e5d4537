<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Internal\Clock;

final class RunStatistics
{
    /** Number of created jobs. Includes jobs without a valid command. Cancelled jobs are subtracted again. */
    public int $submitted = 0;
    public int $succeeded = 0;
    /** Number of failed jobs, including jobs without a valid command. */
    public int $failed = 0;

    public int $concurrency = \PHP_INT_MAX;

    /** Number of all jobs of the run; null while the number is unknown. */
    public ?int $total = null;

    /** Number of jobs that a resumed run has skipped. The total does not include them. */
    public int $skipped = 0;

    private readonly float $startedAt;

    public function __construct()
    {
        $this->startedAt = Clock::now();
    }

    public function doneCount(): int
    {
        return $this->succeeded + $this->failed;
    }

    /** Returns whether all jobs of the run have finished; false while the number of all jobs is unknown. */
    public function isComplete(): bool
    {
        return $this->total !== null && $this->doneCount() >= $this->total;
    }

    public function runningCount(): int
    {
        return min($this->submitted - $this->doneCount(), $this->concurrency);
    }

    public function skipJob(): void
    {
        ++$this->skipped;
        $this->total = $this->total === null ? null : $this->total - 1;
    }

    public function elapsed(): float
    {
        return Clock::now() - $this->startedAt;
    }

    public function rate(): float
    {
        $elapsed = $this->elapsed();

        return $elapsed > 0 ? $this->doneCount() / $elapsed : 0.0;
    }

    /** Returns the seconds until the end of the run, estimated from {@see rate()}; null if that is not possible yet. */
    public function remainingSeconds(): ?float
    {
        $rate = $this->rate();

        return $this->total === null || $rate <= 0 ? null : max(0, $this->total - $this->doneCount()) / $rate;
    }
}
