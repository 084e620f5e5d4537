<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

/** Counts finished jobs in equal intervals of the whole run. Merges pairs of intervals when there are too many. */
final class RateHistory
{
    private const MAX_INTERVALS = 120;

    /** Smallest number of intervals from which {@see spread()} makes an estimate. */
    private const MIN_INTERVALS = 3;

    private const BARS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    private const ASCII_BARS = ['_', '.', ':', '-', '=', '+', '*', '#'];

    /** @var list<int> finished jobs in each complete interval */
    private array $counts = [];
    private int $counted = 0;

    /** Length of an interval, in seconds. */
    private float $interval = 1.0;

    /** @param int $done jobs that have finished in the first $elapsed seconds */
    public function record(float $elapsed, int $done): void
    {
        while ($elapsed >= self::MAX_INTERVALS * $this->interval) {
            $this->mergePairs();
        }
        $missing = (int) ($elapsed / $this->interval) - \count($this->counts);
        for (; $missing > 0; --$missing) {
            $share = (int) round(($done - $this->counted) / $missing);
            $this->counts[] = $share;
            $this->counted += $share;
        }
    }

    /**
     * Returns the standard deviation of the remaining time. The time is uncertain because the counts vary, and because
     * the mean of few past intervals is only an estimate for future intervals.
     *
     * @return float|null seconds; null if too few intervals are complete, or no job has finished in them
     */
    public function spread(float $remainingSeconds): ?float
    {
        $n = \count($this->counts);
        $mean = $n === 0 ? 0.0 : array_sum($this->counts) / $n;
        if ($n < self::MIN_INTERVALS || $mean <= 0) {
            return null;
        }
        $squares = array_sum(array_map(static fn(int $count): float => ($count - $mean) ** 2, $this->counts));
        $deviation = sqrt($squares / ($n - 1)) / $mean;
        $future = $remainingSeconds / $this->interval;

        return $this->interval * $deviation * sqrt($future + $future ** 2 / $n);
    }

    /** Draws the rate as a line of bars, the latest on the right. The highest rate has the highest bar. */
    public function sparkline(int $columns, bool $unicode): string
    {
        $bars = $unicode ? self::BARS : self::ASCII_BARS;
        $counts = \array_slice($this->counts, -max(1, $columns));
        $highest = max(1, 0, ...$counts);
        $bar = static fn(int $count): string => $bars[(int) ceil($count / $highest * (\count($bars) - 1))];

        return implode('', array_map($bar, $counts));
    }

    private function mergePairs(): void
    {
        $pairs = array_chunk($this->counts, 2);
        $last = end($pairs);
        if ($last !== false && \count($last) === 1) {
            array_pop($pairs);
            $this->counted -= $last[0]; // record() counts these jobs again when the longer interval is complete
        }
        $this->counts = array_map(array_sum(...), $pairs);
        $this->interval *= 2;
    }
}
