<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** State of a pool at one moment, and its counters so far. */
final readonly class PostgresPoolStatistics
{
    /**
     * @param int $inUse connections in use, exclusively or shared, and connections that are being pinged or reset
     * @param int $idle connections that are open and not in use
     * @param int $opening connections that are being opened
     * @param int $waiting fibers that wait for a connection
     * @param int $acquired how many times a connection was lent, exclusively or shared
     * @param int $timedOut number of waits that failed because of the acquireTimeout
     * @param int $opened number of connections opened
     * @param int $lost number of connections that ended unexpectedly
     * @param array<string, int> $waitHistogram number of successful waits, by upper bound in seconds and "+Inf"; each
     *     wait counts once, in the first bucket whose bound is not below it
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
        public array $waitHistogram,
    ) {}
}
