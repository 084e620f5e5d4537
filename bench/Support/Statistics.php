<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Summary of a list of measurements. Quartiles are interpolated (R's type 7). */
final readonly class Statistics
{
    /** Range between the slowest and the fastest measurement that causes a warning, as a share of the median. */
    private const MAX_RANGE_SHARE = 0.2;

    private function __construct(
        public float $median,
        public float $min,
        public float $max,
        public int $count,
        public float $lower,
        public float $upper,
    ) {}

    /**
     * @param array<int|float> $values in any order
     *
     * @throws \ValueError when the list is empty
     */
    public static function of(array $values): self
    {
        if ($values === []) {
            throw new \ValueError('Statistics need at least one value');
        }
        sort($values);
        $count = \count($values);
        $middle = intdiv($count - 1, 2);

        return new self(
            ($values[$middle] + $values[intdiv($count, 2)]) / 2,
            (float) $values[0],
            (float) $values[$count - 1],
            $count,
            self::quantile($values, 0.25),
            self::quantile($values, 0.75),
        );
    }

    /**
     * Summarises each round's ratio, because a slow minute of the machine affects both sides of a ratio.
     *
     * @param array<int, float> $values by round
     * @param array<int, float> $bases  by round; rounds that are missing on either side are left out
     *
     * @return self|null null when no round has both
     */
    public static function ofRatios(array $values, array $bases): ?self
    {
        $ratios = [];
        foreach (array_intersect_key($values, $bases) as $round => $value) {
            if ($bases[$round] > 0.0) {
                $ratios[$round] = $value / $bases[$round];
            }
        }

        return $ratios === [] ? null : self::of($ratios);
    }

    /** Returns the distance between the smallest and the largest value, as a share of the median. */
    public function spread(): float
    {
        return $this->median > 0.0 ? ($this->max - $this->min) / $this->median : 0.0;
    }

    public function isWide(): bool
    {
        return $this->spread() > self::MAX_RANGE_SHARE;
    }

    /**
     * Interpolates between the two nearest values (R's type 7).
     *
     * @param non-empty-list<int|float> $sorted
     */
    private static function quantile(array $sorted, float $share): float
    {
        $position = $share * (\count($sorted) - 1);
        $below = (int) floor($position);
        $above = min($below + 1, \count($sorted) - 1);

        return $sorted[$below] + ($position - $below) * ($sorted[$above] - $sorted[$below]);
    }
}
