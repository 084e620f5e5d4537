<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\Input\JobInputs;
use Spindle\Cli\Internal\Run\Input\JobValues;

/** Implements --pipe. Each job reads a block of standard input from a file, so no process copies blocks into pipes. */
final class BlockInputs implements JobInputs
{
    use HasNumberedJobs;

    /** @var array<int, string> names of the blocks of unfinished jobs, by job number */
    private array $names = [];

    /** @param bool $insertsFileName whether {} is replaced with the path of the file, for --cat and --fifo */
    public function __construct(
        private readonly Blocks $blocks,
        private readonly bool $insertsFileName,
        private readonly BlockFiles $files,
    ) {}

    /** Returns 1: one block is written in advance while jobs run. */
    public function lookahead(): int
    {
        return 1;
    }

    public function jobs(InputWait $wait, \Closure $concurrency): \Generator
    {
        $number = 0;
        for ($pieces = $this->blocks->read($wait); $pieces->valid(); $pieces->next()) {
            $path = $this->files->write(++$number, $this->block($pieces));
            if (!$pieces->valid()) {
                return; // $wait was stopped within the block
            }
            $this->names[$number] = Blocks::describe($this->blocks->start, $this->blocks->end, 'standard input');
            yield $number => JobValues::of([$this->insertsFileName ? $path : '']);
        }
    }

    /**
     * Yields the header and one block. Leaves $pieces at the last piece of the block, so that no further input is read.
     *
     * @param \Generator<bool, string> $pieces
     *
     * @return \Generator<int, string>
     */
    private function block(\Generator $pieces): \Generator
    {
        yield $this->blocks->header;
        for (; $pieces->valid(); $pieces->next()) {
            yield $pieces->current();
            if ($pieces->key()) {
                return;
            }
        }
    }

    public function withInput(InputJob $job): InputJob
    {
        $command = $this->insertsFileName
            ? $job->command
            : BlockFiles::withInputFile($job->command, $this->files->path($job->sequence));

        return new InputJob(
            $job->sequence,
            JobValues::of(['']),
            $command,
            $job->slot,
            logged: $this->describe($job->loggedCommand()),
            printed: $this->describe($job->printedCommand()),
            sent: $this->files->size($job->sequence),
            block: $this->names[$job->sequence] ?? null,
        );
    }

    public function describe(string $command): string
    {
        return $this->files->withoutNames($command);
    }

    public function finished(InputJob $job): void
    {
        $this->files->remove($job->sequence);
        unset($this->names[$job->sequence]);
    }

    public function close(): void
    {
        $this->files->removeAll();
        $this->names = [];
    }
}
