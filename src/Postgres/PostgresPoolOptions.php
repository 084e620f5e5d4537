<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Options of a pool besides its size. The defaults suit most applications. */
final readonly class PostgresPoolOptions
{
    /**
     * @param int $minConnections number of connections kept open once the pool is in use
     * @param float $acquireTimeout seconds to wait for a connection; INF for no limit
     * @param int $maxWaiting waiting fibers for which no connection can be opened; further ones fail at once
     * @param float $idleTimeout seconds after which an idle connection is closed; INF for never
     * @param float $maxLifetime seconds after which a connection is replaced, varied at random by a tenth, so that not
     *     all are replaced at once; INF for never
     * @param float $validateAfter seconds of idleness after which a connection is tested before use
     * @param float|null $leakAfter seconds after which a connection from acquire() that was not given back is reported,
     *     with the borrower's stack trace; null for never
     * @param (\Closure(string): void)|null $onWarning receives reports of misuse: a leaked connection, a transaction
     *     that was left open; null for the connections' logger, or PHP's error log if there is none
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
        public ?float $leakAfter = 60.0,
        public ?\Closure $onWarning = null,
    ) {
        foreach ([
            'acquireTimeout' => $acquireTimeout,
            'idleTimeout' => $idleTimeout,
            'maxLifetime' => $maxLifetime,
            'leakAfter' => $leakAfter,
        ] as $name => $seconds) {
            if ($seconds !== null && !($seconds > 0)) {
                throw new \ValueError("The option {$name} must be more than 0 seconds, not {$seconds}");
            }
        }
        if (!($validateAfter >= 0)) {
            throw new \ValueError("The option validateAfter must be 0 or more seconds, not {$validateAfter}");
        }
        foreach (['minConnections' => $minConnections, 'maxWaiting' => $maxWaiting] as $name => $number) {
            if ($number < 0) {
                throw new \ValueError("The option {$name} must be 0 or more, not {$number}");
            }
        }
    }
}
