<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

/** Kind of a frame: a signed job, outcome of a job, item of a generator task, or report of a task. */
enum FrameKind: int
{
    case Job = 1;
    case Outcome = 2;
    case Item = 3;
    case Report = 4;

    /** Returns the words before "job" in messages about a frame, such as "outcome of the ". */
    public function prefix(): string
    {
        return match ($this) {
            self::Job => '',
            self::Outcome => 'outcome of the ',
            self::Item => 'item of the ',
            self::Report => 'report of the ',
        };
    }
}
