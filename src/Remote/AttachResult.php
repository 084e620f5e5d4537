<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The state of a job to which a mailbox was attached: whether the job exists, and its outcome. */
final class AttachResult
{
    /**
     * @param bool        $known      whether the job exists or its outcome is kept
     * @param string|null $outcome    the outcome's frame; null without an outcome, or if it did not fit into the answer
     * @param bool        $hasOutcome whether the job has an outcome. If so and $outcome is null, attach to this job
     *                                alone
     */
    public function __construct(
        public readonly bool $known,
        public readonly ?string $outcome,
        public readonly bool $hasOutcome,
    ) {}
}
