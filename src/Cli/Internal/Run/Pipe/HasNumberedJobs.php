<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

/** Implements parts of {@see \Spindle\Cli\Internal\Run\Input\JobInputs} for an unknown number of jobs without names. */
trait HasNumberedJobs
{
    public function count(): ?int
    {
        return null;
    }

    public function nameOf(int $number): string
    {
        return "job {$number}";
    }
}
