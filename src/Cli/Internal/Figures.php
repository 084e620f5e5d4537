<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** How far a run is. */
final class Figures
{
    public int $started = 0;
    public int $succeeded = 0;
    public int $failed = 0;

    /** How many jobs run at once at most. */
    public int $slots = \PHP_INT_MAX;

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

    public function running(): int
    {
        return min($this->started - $this->done(), $this->slots);
    }

    /** One of the total is not to be done. */
    public function spared(): void
    {
        $this->total = $this->total === null ? null : $this->total - 1;
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
