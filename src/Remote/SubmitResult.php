<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The broker's answer to a submission. */
final class SubmitResult
{
    /**
     * @param int       $accepted  N if each of the first N jobs was added now, was added earlier, or is in
     *                             conflict. The remaining jobs were not added
     * @param list<int> $conflicts list index (starting at 0) of each job whose id already belongs to a different job
     * @param QueueFullException|PayloadTooLargeException|null $refusal why the next job was not added; null if the
     *     queue had $maxJobs jobs without an outcome, or if all jobs were accepted
     */
    public function __construct(
        public readonly int $accepted,
        public readonly array $conflicts = [],
        public readonly QueueFullException|PayloadTooLargeException|null $refusal = null,
    ) {}
}
