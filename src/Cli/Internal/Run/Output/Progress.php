<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\RunStatistics;
use Spindle\Command\CommandResult;

interface Progress
{
    /** Called with the result of each job, before the output of the job is written. */
    public function finished(InputJob $job, CommandResult $result, RunStatistics $statistics): void;

    /** Called after each job's output, with changed statistics. Implementations may show the statistics less often. */
    public function update(RunStatistics $statistics): void;

    /** Returns the bytes that clear the progress from the terminal. The caller writes them before other output. */
    public function clearingBytes(): string;

    /** Called with output that is not progress, after this output was written to the terminal. */
    public function wrote(string $bytes): void;

    public function show(RunStatistics $statistics): void;

    public function finish(RunStatistics $statistics): void;

    /** Clears the progress and restores the terminal. Called even after a failure. */
    public function close(): void;
}
