<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

final class PoolCounters
{
    /** Upper bounds of the histogram of waits for a session, in seconds. */
    private const BOUNDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, \INF];

    public int $acquired = 0;

    public int $timedOut = 0;

    public int $opened = 0;

    public int $lost = 0;

    /** @var array<int, int> number of successful waits, by index of the smallest bound that includes them */
    private array $waits = [0, 0, 0, 0, 0, 0, 0, 0, 0];

    private float $waitSeconds = 0.0;

    public function countWait(float $seconds): void
    {
        $index = $seconds <= 0.01 ? ($seconds <= 0.001 ? 0 : ($seconds <= 0.005 ? 1 : 2)) : 3;
        while ($seconds > self::BOUNDS[$index]) {
            ++$index;
        }
        $this->waits[$index] = ($this->waits[$index] ?? 0) + 1;
        $this->waitSeconds += $seconds;
    }

    /** @return array<string, int|float> a histogram in the form that {@see \Spindle\Statistics} describes */
    public function waits(): array
    {
        $histogram = [];
        $count = 0;
        foreach (self::BOUNDS as $index => $bound) {
            $count += $this->waits[$index] ?? 0;
            $histogram[strtolower(\sprintf('wait_seconds_le_%h_total', $bound))] = $count; // ignores precision, locale
        }

        return [...$histogram, 'wait_seconds_total' => $this->waitSeconds];
    }
}
