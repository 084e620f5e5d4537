<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\InputSource;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\Input\JobInputs;

/**
 * Implements --tee: each job reads all of standard input. Standard input is copied to a temporary file before the first
 * job starts, because a later job must be able to read the input from its beginning.
 */
final class TeeInputs implements JobInputs
{
    /** Number of the temporary file in {@see BlockFiles}. No job has this number. */
    private const ALL = 0;

    /** @param JobInputs $values creates the jobs from their arguments */
    public function __construct(
        private readonly JobInputs $values,
        private readonly InputSource $source,
        private readonly BlockFiles $files,
    ) {}

    public function count(InputWait $wait): ?int
    {
        return $this->values->count($wait);
    }

    public function nameOf(int $number): string
    {
        return $this->values->nameOf($number);
    }

    public function lookahead(): int
    {
        return $this->values->lookahead();
    }

    public function jobs(InputWait $wait, \Closure $concurrency): \Generator
    {
        $this->files->write(self::ALL, $this->files->areWritten ? $this->source->bytes($wait) : []);
        yield from $this->values->jobs($wait, $concurrency);
    }

    public function withInput(InputJob $job): InputJob
    {
        return $job->withCommand(BlockFiles::withInputFile($job->command, $this->files->path(self::ALL)));
    }

    public function describe(string $command): string
    {
        return $command;
    }

    public function finished(InputJob $job): void {}

    public function close(): void
    {
        $this->files->removeAll();
    }
}
