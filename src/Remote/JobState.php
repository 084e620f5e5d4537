<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** What a broker knows of a job. */
final class JobState
{
    /**
     * @param bool        $known   whether it is there, or has an outcome that is kept yet
     * @param string|null $outcome the frame; null while there is none, or when the answer had no room for it
     * @param bool        $over    whether it has an outcome, which is to be asked for by itself if it is not here
     */
    public function __construct(public readonly bool $known, public readonly ?string $outcome, public readonly bool $over) {}
}
