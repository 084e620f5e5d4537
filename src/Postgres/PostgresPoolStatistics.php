<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** What a pool was doing at one moment, and has done so far. */
final readonly class PostgresPoolStatistics
{
    /**
     * @param int $inUse     connections that are used, shared ones included
     * @param int $idle      connections that nobody uses
     * @param int $opening   connections that are being opened
     * @param int $waiting   who waits for a connection
     * @param int $maxConnections as many as there may be
     * @param int $acquired  how often a connection was given, alone or shared with others
     * @param int $timedOut  how often one was waited for in vain
     * @param int $opened    connections that were opened
     * @param int $lost      connections that ended by themselves
     * @param array<string, int> $waited of those who had to wait and got one, how many waited up to so many seconds: an upper bound in
     *                                   seconds each, and "+Inf"; each counts once, in the first bound that it fits
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
