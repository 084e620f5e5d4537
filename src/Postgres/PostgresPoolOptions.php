<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * What a pool can be told beyond its size. The defaults need no thought.
 */
final readonly class PostgresPoolOptions
{
    /**
     * @param int        $minConnections that are kept open once the pool is in use
     * @param float      $acquireTimeout seconds that somebody waits for a connection; INF for no limit
     * @param int        $maxWaiting     who may wait for others at the same time, beyond those for whom a connection can still be opened; whoever
     *                                   comes then is refused at once
     * @param float      $idleTimeout    seconds after which a connection that nobody uses is closed; INF for never
     * @param float      $maxLifetime    seconds after which a connection is replaced, a tenth of it at random, so that not all are
     *                                   replaced at once; INF for never
     * @param float      $validateAfter  seconds of idleness after which a connection is tried before it is used
     * @param float|null $leakAfter      seconds after which a connection that was borrowed by acquire() and not given back is reported, with
     *                                   the stack of the borrower; null for never
     * @param (\Closure(string): void)|null $onWarning gets what a borrower did wrong: a connection that leaked, a transaction that was
     *                                   left open; null for the logger of the connections, and standard error's log where there is none
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
        foreach (['acquireTimeout' => $acquireTimeout, 'idleTimeout' => $idleTimeout, 'maxLifetime' => $maxLifetime, 'leakAfter' => $leakAfter] as $name => $seconds) {
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
