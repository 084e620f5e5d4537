<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

/** The methods of {@see \Spindle\Cli\Internal\Run\Input\JobInputs} for jobs that are known only by their numbers. */
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
