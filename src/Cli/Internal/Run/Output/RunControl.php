<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\Input\InputJob;

/** Lists and ends the jobs of a run, pauses job starts, and changes the concurrency, for the screen and its keys. */
interface RunControl
{
    /** @return list<InputJob> jobs that run according to the pool's estimate, in the order of the input */
    public function runningJobs(): array;

    /** Starts no more jobs until {@see resume()}. Running jobs continue. */
    public function pause(): void;

    public function resume(): void;

    /** @param positive-int $concurrency number of jobs that run at the same time; the system may allow fewer */
    public function resize(int $concurrency): void;

    /** Ends a running job, which then counts as failed. */
    public function end(InputJob $job): void;

    /** Returns the latest output of a running job: of standard output, then of standard error. */
    public function outputOf(InputJob $job): string;
}
