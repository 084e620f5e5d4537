<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** An agent's message to the broker: how a claimed job ended. The job then has an outcome, or returns to the queue. */
final class Settlement
{
    /**
     * @param int    $claimNumber the claim's {@see Delivery::$claimNumber}
     * @param int    $crashes     number of crashes of the job so far, which the next claim reports
     * @param int    $failures    number of failed attempts of the job so far, which the next claim reports
     * @param float  $delay       seconds until the job can be claimed again, by the engine's clock
     * @param string $frame       the signed outcome; ignored if the job returns to the queue
     * @param string $reason      for a dead letter: JSON, whose values {@see Broker::listJobs()} returns
     */
    public function __construct(
        public readonly string $id,
        public readonly int $claimNumber,
        public readonly SettlementKind $kind,
        public readonly int $crashes = 0,
        public readonly int $failures = 0,
        public readonly float $delay = 0.0,
        public readonly string $frame = '',
        public readonly string $reason = '',
    ) {}
}
