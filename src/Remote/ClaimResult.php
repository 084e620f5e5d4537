<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The answer of {@see Broker::settleAndClaim()}: the claimed jobs, and the jobs whose settlements had no effect. */
final class ClaimResult
{
    /**
     * @param list<Delivery> $deliveries
     * @param list<string>   $stale      ids of the jobs whose settlements had no effect, because the claim had ended
     */
    public function __construct(public readonly array $deliveries, public readonly array $stale) {}
}
