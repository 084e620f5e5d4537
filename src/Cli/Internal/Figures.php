<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** How far a run is. */
final class Figures
{
    public int $started = 0;
    public int $succeeded = 0;
    public int $failed = 0;

    /** Jobs that there will be in all; null while that is not known. */
    public ?int $total = null;

    private readonly int $begun;

    /** @param \Closure(): int $clock as hrtime(true) */
    public function __construct(private readonly \Closure $clock)
    {
        $this->begun = $clock();
    }

    public function done(): int
    {
        return $this->succeeded + $this->failed;
    }

    /** Since the run began, in seconds. */
    public function elapsed(): float
    {
        return (($this->clock)() - $this->begun) / 1e9;
    }

    /** Jobs a second, from the beginning on. */
    public function rate(): float
    {
        $elapsed = $this->elapsed();

        return $elapsed > 0 ? $this->done() / $elapsed : 0.0;
    }

    /** Seconds until the end at this rate; null while nobody can know. */
    public function remaining(): ?float
    {
        $rate = $this->rate();

        return $this->total === null || $rate <= 0 ? null : max(0, $this->total - $this->done()) / $rate;
    }
}
