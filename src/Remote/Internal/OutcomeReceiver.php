<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\BrokerRefusedException;

/** Receives the outcomes of jobs. */
interface OutcomeReceiver
{
    /** Whether the outcome is needed; if not, {@see outcome()} may get an empty string. */
    public function wantsOutcome(): bool;

    /**
     * Receives the outcome. Nothing more follows for the job.
     *
     * @param string $frame not verified yet; may be empty
     */
    public function outcome(string $id, string $frame): void;

    /** Reports that the broker does not know the job. Nothing more follows for it. */
    public function unknown(string $id): void;

    /** Reports that the engine refuses requests about the job. Nothing more follows for it. */
    public function refused(string $id, BrokerRefusedException $refused): void;

    /** Reports that the job is a generator with new items. */
    public function items(string $id): void;

    /** Receives a report of the task. */
    public function report(string $id, string $frame): void;
}
