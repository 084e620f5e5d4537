<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** A figure of each round of a series, used to compare checkouts. */
final readonly class Metric
{
    /** @param \Closure(Series): array<int, float> $byRound */
    private function __construct(
        public string $unit,
        public int $decimals,
        private \Closure $byRound,
    ) {}

    /** Returns the main figure of the series. */
    public static function figure(string $unit, int $decimals = 0): self
    {
        return new self($unit, $decimals, static fn(Series $series): array => $series->values());
    }

    /** Returns a figure of the raw data. */
    public static function raw(string $unit, string $name, int $decimals = 0): self
    {
        return new self($unit, $decimals, static fn(Series $series): array => $series->byRound($name));
    }

    /**
     * Returns the CPU time of an operation in microseconds: a sum of figures of the raw data.
     *
     * @param non-empty-list<string> $names
     * @param float                  $factor microseconds per unit of the figures
     * @param string|null            $count  figure with the number of operations; null if the figures are per operation
     */
    public static function cpu(array $names, float $factor = 1e6, ?string $count = null): self
    {
        return new self('CPU µs each', 2, static function (Series $series) use ($names, $factor, $count): array {
            $counts = $count === null ? [] : $series->byRound($count);
            $sums = [];
            foreach ($names as $name) {
                foreach ($series->byRound($name) as $round => $value) {
                    $sums[$round] = ($sums[$round] ?? 0.0) + $factor * $value / max(1.0, $counts[$round] ?? 1.0);
                }
            }

            return $sums;
        });
    }

    /** @return array<int, float> by round; rounds without a figure are left out */
    public function of(Series $series): array
    {
        return array_filter(($this->byRound)($series), static fn(float $value): bool => $value > 0.0);
    }
}
