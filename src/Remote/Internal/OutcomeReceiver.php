<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\BrokerRefusedException;

/** A waiter of one or more jobs: receives their outcomes, and the messages about them. */
interface OutcomeReceiver
{
    /** Returns whether the outcome is needed. If not, {@see onOutcome()} may receive an empty string. */
    public function wantsOutcome(): bool;

    /**
     * Receives the outcome. No further message follows for the job.
     *
     * @param string $frame the unverified frame; may be empty if the outcome is not needed
     */
    public function onOutcome(string $id, string $frame): void;

    /** Reports that the broker does not know the job. No further message follows for the job. */
    public function onUnknown(string $id): void;

    /** Reports that the engine refuses requests about the job. No further message follows for the job. */
    public function onRefused(string $id, BrokerRefusedException $refused): void;

    /** Reports that new items of a generator task are stored. */
    public function onItems(string $id): void;

    /** @param string $frame the unverified frame of the task's report */
    public function onReport(string $id, string $frame): void;
}
