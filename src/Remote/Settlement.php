<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** What an agent says of a job that it had. */
final class Settlement
{
    /**
     * @param int    $number  of the claim: {@see Delivery::$number}
     * @param int    $crashes and fails, which another claim of the job is told
     * @param float  $delay   seconds of the engine's clock before it is to be tried again
     * @param string $frame   its outcome, signed
     * @param string $why     in JSON, for who looks at dead letters
     */
    public function __construct(
        public readonly string $id,
        public readonly int $number,
        public readonly SettlementKind $kind,
        public readonly int $crashes = 0,
        public readonly int $fails = 0,
        public readonly float $delay = 0.0,
        public readonly string $frame = '',
        public readonly string $why = '',
    ) {}
}
