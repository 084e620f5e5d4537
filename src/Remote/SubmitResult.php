<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The broker's answer to a submission. */
final class SubmitResult
{
    /**
     * @param int       $accepted  number of jobs from the start of the list that were added now or before
     * @param list<int> $conflicts positions of those whose id belongs to another task, so that they were not added
     */
    public function __construct(public readonly int $accepted, public readonly array $conflicts = []) {}
}
