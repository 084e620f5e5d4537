<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

final class PoolCounters
{
    /** Buckets of the histogram of waits for a session: upper bounds in seconds, and names. */
    private const BOUNDS_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, \INF];
    private const BUCKETS = [
        'waited_1ms_total',
        'waited_5ms_total',
        'waited_10ms_total',
        'waited_50ms_total',
        'waited_100ms_total',
        'waited_500ms_total',
        'waited_1s_total',
        'waited_5s_total',
        'waited_longer_total',
    ];

    public int $acquired = 0;

    public int $timedOut = 0;

    public int $opened = 0;

    public int $lost = 0;

    /** @var array<string, int> number of successful waits, by bucket */
    public array $waitHistogram;

    public function __construct()
    {
        $this->waitHistogram = array_fill_keys(self::BUCKETS, 0);
    }

    public function countWait(float $seconds): void
    {
        $index = $seconds <= 0.01 ? ($seconds <= 0.001 ? 0 : ($seconds <= 0.005 ? 1 : 2)) : 3;
        while ($seconds > self::BOUNDS_SECONDS[$index]) {
            ++$index;
        }
        $this->waitHistogram[self::BUCKETS[$index]] = ($this->waitHistogram[self::BUCKETS[$index]] ?? 0) + 1;
    }
}
