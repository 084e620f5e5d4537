<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** A job that an agent has claimed. With the agent's name, {@see self::$number} is the fence: no other claim has both. */
final class Delivery
{
    /**
     * @param int    $number    of the claims of this job, 1 for the first
     * @param int    $crashes   of workers or agents that had it before
     * @param int    $fails     times that it has thrown or run for too long
     * @param bool   $cancelled whether nobody wants it any more
     * @param bool   $lost      whether an agent was lost that had it
     * @param bool   $streamed  whether items of it were stored already
     */
    public function __construct(
        public readonly string $id,
        public readonly int $number,
        public readonly int $crashes,
        public readonly int $fails,
        public readonly bool $cancelled,
        public readonly bool $lost,
        public readonly bool $streamed,
        public readonly string $frame,
    ) {}
}
