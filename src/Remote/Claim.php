<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The answer to a settlement: jobs that were claimed, and settlements that did not count. */
final class Claim
{
    /**
     * @param list<Delivery> $deliveries
     * @param list<string>   $stale      ids of settlements that did not count: the job was not the owner's any more
     */
    public function __construct(public readonly array $deliveries, public readonly array $stale) {}
}
