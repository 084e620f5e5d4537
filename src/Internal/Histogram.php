<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Counts durations by size, for {@see \Spindle\Statistics}. */
final class Histogram
{
    /** @var array<int, int> number of values, by index of the smallest bound that includes them */
    private array $counts;

    private float $sum = 0.0;

    /** @param non-empty-list<float> $bounds upper bounds in seconds, ascending; the last one is INF */
    public function __construct(private readonly array $bounds)
    {
        $this->counts = array_fill(0, \count($bounds), 0);
    }

    public function add(float $seconds): void
    {
        $index = 0;
        while ($seconds > $this->bounds[$index]) {
            ++$index;
        }
        $this->counts[$index] = ($this->counts[$index] ?? 0) + 1;
        $this->sum += $seconds;
    }

    /** @return array<string, int|float> */
    public function statistics(string $name): array
    {
        $statistics = [];
        $count = 0;
        foreach ($this->bounds as $index => $bound) {
            $count += $this->counts[$index] ?? 0;
            $statistics[strtolower(\sprintf('%s_le_%h_total', $name, $bound))] = $count; // %h ignores precision, locale
        }

        return [...$statistics, "{$name}_total" => $this->sum];
    }
}
