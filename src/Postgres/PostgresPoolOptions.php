<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Spindle\Internal\NumberRange;

/** Options of a pool, except for its size. The defaults are suitable for most applications. */
final readonly class PostgresPoolOptions
{
    /**
     * @param int $minConnections minimum number of connections that are kept open after the first use of the pool
     * @param float $acquireTimeout maximum seconds to wait for a connection; INF for no limit
     * @param int $maxWaiting maximum number of fibers that wait for a connection; a further call fails immediately. A
     *     fiber for which the pool can open a connection does not count
     * @param float $idleTimeout seconds after which an idle connection is closed, unless minConnections requires this
     *     connection; INF for never
     * @param float $maxLifetime seconds after which a connection is closed as soon as it is free; INF for never. Each
     *     connection gets a random lifetime of 90 to 100 % of this number, so that not all connections end together
     * @param float $validateAfter seconds after which an idle connection is pinged before its next use
     * @param float|null $leakDetectionThreshold seconds after which a warning reports a connection from acquire() that
     *     was not released; null for never. The warning contains the stack trace of the call of acquire()
     * @param (\Closure(string): mixed)|null $onWarning receives warnings, for example about a connection that was not
     *     released, a transaction that was left open, a stream that was left early and not committed, or a COMMIT
     *     without an answer; null for {@see PostgresOptions::$logger}, or for PHP's error log if there is no logger
     *
     * @throws \ValueError when a number is out of its range
     */
    public function __construct(
        public int $minConnections = 0,
        public float $acquireTimeout = 5.0,
        public int $maxWaiting = 10_000,
        public float $idleTimeout = 60.0,
        public float $maxLifetime = 1_800.0,
        public float $validateAfter = 1.0,
        public ?float $leakDetectionThreshold = 60.0,
        public ?\Closure $onWarning = null,
    ) {
        NumberRange::checkTimeLimits([
            'acquireTimeout' => $acquireTimeout,
            'idleTimeout' => $idleTimeout,
            'maxLifetime' => $maxLifetime,
            'leakDetectionThreshold' => $leakDetectionThreshold,
        ]);
        if (!($validateAfter >= 0)) {
            throw new \ValueError(
                'The option validateAfter must be 0 or more seconds, not ' . NumberRange::text($validateAfter),
            );
        }
        foreach (['minConnections' => $minConnections, 'maxWaiting' => $maxWaiting] as $name => $number) {
            if ($number < 0) {
                throw new \ValueError("The option {$name} must be 0 or more, not {$number}");
            }
        }
    }
}
