<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

/** Measures whether a client transfers bytes fast enough to keep its connection while the server is full. */
final class SlowClientCheck
{
    /** A client is too slow if its rate was below FACTOR * minBodyRate for this many nanoseconds. */
    private const MIN_NANOSECONDS = 3_000_000_000;
    private const FACTOR = 20;

    /** Value of $time in {@see isTooSlow()} when the measurement began; -1 before the first measurement. */
    private int $measuredAt = -1;

    private int $measuredBytes = 0;

    /** @param int $minBodyRate minimum bytes per second of a request body while the server is not full */
    public function __construct(private readonly int $minBodyRate) {}

    /**
     * Returns whether the client was too slow since the measurement began. Begins a measurement if there is none, or
     * if the client was fast enough.
     *
     * @param int $waitStart value of $time when the server began to wait; an older measurement is not used
     * @param int $time      hrtime(true); for request bodies, the nanoseconds that the server has waited for them
     * @param int $bytes     bytes transferred so far
     */
    public function isTooSlow(int $waitStart, int $time, int $bytes): bool
    {
        $waited = $time - $this->measuredAt;
        if ($this->measuredAt >= $waitStart && $waited >= 0) {
            if ($waited < self::MIN_NANOSECONDS) {
                return false;
            }
            if ($bytes - $this->measuredBytes < self::FACTOR * $this->minBodyRate * $waited / 1e9) {
                return true;
            }
        }
        [$this->measuredAt, $this->measuredBytes] = [$time, $bytes];

        return false;
    }
}
