<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\Run\Input\InputWait;

/** Methods of {@see \Spindle\Cli\Internal\Run\Input\JobInputs} for jobs with a number, but no name or known total. */
trait HasNumberedJobs
{
    public function count(InputWait $wait): ?int
    {
        return null;
    }

    public function nameOf(int $number): string
    {
        return "job {$number}";
    }
}
