<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

/** Counters of a pool since it was created. */
final class Counts
{
    /** Upper bounds of the waiting times, in seconds, and the same as keys. */
    private const BOUNDS_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, \INF];
    private const BOUND_KEYS = ['0.001', '0.005', '0.01', '0.05', '0.1', '0.5', '1.0', '5.0', '+Inf'];

    public int $acquired = 0;

    public int $timedOut = 0;

    public int $opened = 0;

    public int $lost = 0;

    /** @var array<string, int> by upper bound */
    public array $waited;

    public function __construct()
    {
        $this->waited = array_fill_keys(self::BOUND_KEYS, 0);
    }

    /** Counts a waiter that got its session after `$seconds`. */
    public function waited(float $seconds): void
    {
        $index = $seconds <= 0.01 ? ($seconds <= 0.001 ? 0 : ($seconds <= 0.005 ? 1 : 2)) : 3;
        while ($seconds > self::BOUNDS_SECONDS[$index]) {
            ++$index;
        }
        $this->waited[self::BOUND_KEYS[$index]] = ($this->waited[self::BOUND_KEYS[$index]] ?? 0) + 1;
    }
}
