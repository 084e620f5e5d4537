<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Summary of a list of measurements. Quartiles are interpolated (R's type 7). */
final readonly class Statistics
{
    /** From this share of the median between the slowest and the fastest, a figure wants a warning. */
    private const WIDE = 0.2;

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
     * @throws \ValueError when there are none
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
     * Of each round's own ratio: a machine that is slow for a while is so for both sides of a ratio.
     *
     * @param array<int, float> $values by round
     * @param array<int, float> $bases  by round; a round that is missing on either side does not count
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

    /** The distance between the smallest and the largest value, as a share of the median. */
    public function spread(): float
    {
        return $this->median > 0.0 ? ($this->max - $this->min) / $this->median : 0.0;
    }

    public function isWide(): bool
    {
        return $this->spread() > self::WIDE;
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
