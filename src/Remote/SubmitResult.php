<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The broker's answer to a submission. */
final class SubmitResult
{
    /**
     * @param int       $accepted  N if the first N jobs of the list were added now, were added before, or are in
     *                             conflict. The later jobs were not added, because the queue was full
     * @param list<int> $conflicts list index (starting at 0) of each job whose id already belongs to a different job
     */
    public function __construct(public readonly int $accepted, public readonly array $conflicts = []) {}
}
