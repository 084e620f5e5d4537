<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\UsageException;

/** Divides the input of a run among jobs: as values for their commands, or as bytes that their commands read. */
interface JobInputs
{
    /** Returns the number of jobs; null if it is unknown until the input is read, or if $wait is stopped. */
    public function count(InputWait $wait): ?int;

    /** Returns the name of a job for messages, such as "job 3"; the name of its record if the job has only one. */
    public function nameOf(int $number): string;

    /** Returns how many jobs may be created in advance, before a slot is free for them. */
    public function lookahead(): int;

    /**
     * Yields the values of each job. Ends early when $wait is stopped. Can be called only once.
     *
     * @param \Closure(): int $concurrency number of jobs that run at the same time
     *
     * @return \Generator<int, JobValues> values by job number, starting at 1
     *
     * @throws UsageException        when the input can't be read, or a record does not fit into a command
     * @throws OutputFailedException when a temporary file can't be written
     */
    public function jobs(InputWait $wait, \Closure $concurrency): \Generator;

    /** Returns the job with the input that its command reads. Must be called for each job before it runs. */
    public function withInput(InputJob $job): InputJob;

    /** Returns a command line for printing and for logs, with a fixed name instead of a temporary file's name. */
    public function describe(string $command): string;

    /**
     * Releases the input of a job that has ended or does not run. With --round-robin, sets {@see InputJob::$sent}.
     *
     * @throws UsageException when the input was changed during the run, so the job may have read other bytes
     */
    public function finished(InputJob $job): void;

    public function close(): void;
}
