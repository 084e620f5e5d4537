<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The end of a claim, as the agent reports it to the broker. */
final class Settlement
{
    /**
     * @param int    $number   the claim's {@see Delivery::$number}
     * @param int    $crashes  number of crashes with which the next claim starts
     * @param int    $failures number of failed attempts with which the next claim starts
     * @param float  $delay    seconds of the engine's clock before the next attempt
     * @param string $frame    the outcome, signed
     * @param string $reason   JSON with the reason, which is shown with dead letters
     */
    public function __construct(
        public readonly string $id,
        public readonly int $number,
        public readonly SettlementKind $kind,
        public readonly int $crashes = 0,
        public readonly int $failures = 0,
        public readonly float $delay = 0.0,
        public readonly string $frame = '',
        public readonly string $reason = '',
    ) {}
}
