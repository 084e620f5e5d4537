<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** What an agent gets for what it has settled. */
final class Claim
{
    /**
     * @param list<Delivery> $deliveries
     * @param list<string>   $stale      ids of those settlements that did not count: the job was not the owner's any more
     */
    public function __construct(public readonly array $deliveries, public readonly array $stale) {}
}
