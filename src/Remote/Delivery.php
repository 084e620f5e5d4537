<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** A claimed job. The owner's name and {@see self::$number} are the fencing token: no other claim has both. */
final class Delivery
{
    /**
     * @param int  $number    position of this claim among the claims of the job, from 1
     * @param int  $crashes   workers or agents that crashed with this job before
     * @param int  $failures  attempts that threw or exceeded the time limit
     * @param bool $cancelled whether the job was withdrawn
     * @param bool $lost      whether an agent that had the job was lost
     * @param bool $streamed  whether some of its items are stored already
     * @param int  $tooLarge  bytes of the frame if it was larger than the owner can read; $frame is empty then; or 0
     */
    public function __construct(
        public readonly string $id,
        public readonly int $number,
        public readonly int $crashes,
        public readonly int $failures,
        public readonly bool $cancelled,
        public readonly bool $lost,
        public readonly bool $streamed,
        public readonly string $frame,
        public readonly int $tooLarge = 0,
    ) {}
}
