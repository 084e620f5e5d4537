<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Bench\Support\Statistics;

/** Durations of repeated work, in milliseconds. */
final class Samples
{
    /** @var list<float> */
    private array $times = [];

    /** @param \Closure(): void $work */
    public function take(\Closure $work): void
    {
        $begin = hrtime(true);
        $work();
        $this->times[] = (hrtime(true) - $begin) / 1e6;
    }

    public function median(): float
    {
        return $this->times === [] ? 0.0 : Statistics::of($this->times)->median;
    }

    public function slowest(): float
    {
        return max([0.0, ...$this->times]);
    }
}
