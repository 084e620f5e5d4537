<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\BrokerRefusedException;

/** Who waits for the outcomes of jobs. */
interface Waiter
{
    /** Whether it looks at the outcome; if not, that may be an empty string. */
    public function wantsOutcome(): bool;

    /**
     * The job is over, and nothing more comes for it.
     *
     * @param string $frame not verified yet
     */
    public function outcome(string $id, string $frame): void;

    /** The broker knows nothing of the job, and nothing more comes for it. */
    public function unknown(string $id): void;

    /** The engine refuses to tell what becomes of the job, and nothing more comes for it. */
    public function refused(string $id, BrokerRefusedException $refused): void;

    /** The job's outcome is a sequence, and there are items of it. */
    public function items(string $id): void;

    /** The task tells something. */
    public function report(string $id, string $frame): void;
}
