<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** What a broker answers when jobs are submitted. */
final class SubmitResult
{
    /**
     * @param int       $accepted  how many of the first are taken in, or were before
     * @param list<int> $conflicts positions of those among them that were not taken in, because their id belongs to another task
     */
    public function __construct(public readonly int $accepted, public readonly array $conflicts = []) {}
}
