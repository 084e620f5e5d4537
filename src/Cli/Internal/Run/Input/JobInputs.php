<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\Run\Output\OutputFailedException;
use Spindle\Cli\Internal\UsageException;

/** The input of a run as jobs: their values, and what their commands read. */
interface JobInputs
{
    /** Counts the jobs; null if they can't be counted before the input is read. */
    public function count(): ?int;

    /** Returns what a message calls a job. */
    public function nameOf(int $number): string;

    /** Returns how many jobs can be made in advance. */
    public function lookahead(): int;

    /**
     * Yields the values of each job. Ends early when $wait is stopped. Can be called once.
     *
     * @param \Closure(): int $concurrency number of jobs that run at once
     *
     * @return \Generator<int, JobValues> by number, from 1
     *
     * @throws UsageException        when the input can't be read, or a record does not fit into a command
     * @throws OutputFailedException when a temporary file can't be written
     */
    public function jobs(InputWait $wait, \Closure $concurrency): \Generator;

    /** Returns the job with what its command reads. Must be called once for each job that runs. */
    public function withInput(InputJob $job): InputJob;

    /** Returns a command line as it is shown and logged, without the name of a temporary file. */
    public function describe(string $command): string;

    /**
     * Releases what belongs to a job that has ended or does not run, and sets the bytes of its input.
     *
     * @throws UsageException when the job may have read something else than its part of the input
     */
    public function finished(InputJob $job): void;

    /** Releases what belongs to all jobs. */
    public function close(): void;
}
