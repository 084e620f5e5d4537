<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Internal\Histogram;

final class PoolCounters
{
    /** Upper bounds of the histogram of waits for a session, in seconds. */
    private const BOUNDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, \INF];

    public int $acquired = 0;

    public int $timedOut = 0;

    public int $opened = 0;

    public int $lost = 0;

    public readonly Histogram $waits;

    public function __construct()
    {
        $this->waits = new Histogram(self::BOUNDS);
    }
}
