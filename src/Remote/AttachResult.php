<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The answer of {@see Broker::attach()} about one job: whether the job exists, and its outcome. */
final class AttachResult
{
    /**
     * @param bool        $known      whether the job exists, or its outcome or its cancellation is kept
     * @param string|null $outcome    the outcome's frame; null if there is none, or if it did not fit into the answer
     * @param bool        $hasOutcome whether the job has an outcome. If this is true and $outcome is null, call
     *                                attach() again with only this job's id
     * @param bool        $cancelled  whether the job was cancelled and has no outcome
     */
    public function __construct(
        public readonly bool $known,
        public readonly ?string $outcome,
        public readonly bool $hasOutcome,
        public readonly bool $cancelled = false,
    ) {}
}
