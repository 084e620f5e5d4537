<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\Input\InputJob;

/** Shows and changes the jobs of a run, for the keys of a screen. */
interface RunControl
{
    /** @return list<InputJob> jobs that are running, by an estimate of the pool, in the order of the input */
    public function runningJobs(): array;

    /** Starts no more jobs until {@see resume()}. Running jobs continue. */
    public function pause(): void;

    public function resume(): void;

    /** @param positive-int $concurrency number of jobs that run at once; the system may allow fewer */
    public function resize(int $concurrency): void;

    /** Ends a running job, which then counts as failed. */
    public function end(InputJob $job): void;

    /** Returns the end of what a running job has printed so far: its standard output, then its standard error. */
    public function outputOf(InputJob $job): string;
}
