<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** A job that an owner (an agent under one lease) has claimed. The owner needs the claim number to settle the job. */
final class Delivery
{
    /** After this number of refusals ({@see SettlementKind::Refused}), one more makes the job a dead letter. */
    public const MAX_REFUSALS = 3;

    /**
     * @param int    $claimNumber   number of this claim of the job; the first claim has number 1
     * @param int    $crashes       number of earlier attempts in which the worker crashed or the agent was lost
     * @param int    $failures      number of earlier claims that ended with an exception or a timeout
     * @param bool   $cancelled     whether the job was cancelled, or no reader will take more items of the generator
     * @param bool   $lost          whether an earlier owner has lost the job, because that owner's lease ended
     * @param bool   $streamed      whether items of the job were stored, even if a reader has taken them all
     * @param string $frame         the signed job; empty if it is too large for the owner
     * @param int    $oversizeBytes size of a frame that is too large for the owner; otherwise 0
     * @param int    $refusals      number of earlier claims that ended with a refusal, at most MAX_REFUSALS. Also
     *                              MAX_REFUSALS if another owner has refused the job once, or lacked the task's code
     * @param int    $postponedSeconds seconds since the job was first postponed; 0 if it never was
     * @param float  $waitedSeconds for how long the job was claimable before this claim, by the engine's clock
     */
    public function __construct(
        public readonly string $id,
        public readonly int $claimNumber,
        public readonly int $crashes,
        public readonly int $failures,
        public readonly bool $cancelled,
        public readonly bool $lost,
        public readonly bool $streamed,
        public readonly string $frame,
        public readonly int $oversizeBytes = 0,
        public readonly int $refusals = 0,
        public readonly int $postponedSeconds = 0,
        public readonly float $waitedSeconds = 0.0,
    ) {}
}
