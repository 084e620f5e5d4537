<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The broker's answer to a submission. */
final class SubmitResult
{
    /**
     * @param int       $accepted  number of jobs, from the start of the list, that were added now or before, or are in
     *                             conflict. The jobs after them were not added, because the queue was full
     * @param list<int> $conflicts positions in the list, from 0, of jobs whose id belongs to another job
     */
    public function __construct(public readonly int $accepted, public readonly array $conflicts = []) {}
}
