<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The state of a job in a broker. */
final class JobState
{
    /**
     * @param bool        $known      whether the job exists or its outcome is still kept
     * @param string|null $outcome    the frame; null while there is none, or when it did not fit into the answer
     * @param bool        $hasOutcome whether the job has an outcome; without $outcome, ask for that job alone
     */
    public function __construct(
        public readonly bool $known,
        public readonly ?string $outcome,
        public readonly bool $hasOutcome,
    ) {}
}
