<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** State of a pool at one moment, and its counters so far. */
final readonly class PostgresPoolStatistics
{
    /**
     * @param int $inUse connections in use, shared ones included
     * @param int $idle connections that are not in use
     * @param int $opening connections that are being opened
     * @param int $waiting fibers that wait for a connection
     * @param int $maxConnections largest number of connections
     * @param int $acquired how often a connection was lent, exclusively or shared
     * @param int $timedOut how often a wait for a connection failed
     * @param int $opened connections opened
     * @param int $lost connections that ended unexpectedly
     * @param array<string, int> $waited histogram of successful waits, by upper bound in seconds and "+Inf"; each wait
     *     counts once, in the first bound that fits
     */
    public function __construct(
        public int $inUse,
        public int $idle,
        public int $opening,
        public int $waiting,
        public int $maxConnections,
        public int $acquired,
        public int $timedOut,
        public int $opened,
        public int $lost,
        public array $waited,
    ) {}
}
