<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** What a broker knows of a job. */
final class JobState
{
    /**
     * @param bool        $known   whether it is there, or has an outcome that is kept yet
     * @param string|null $outcome the frame; null while there is none
     */
    public function __construct(public readonly bool $known, public readonly ?string $outcome) {}
}
