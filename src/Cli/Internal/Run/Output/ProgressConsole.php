<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

/** The part of {@see Console} that a {@see Progress} uses. */
interface ProgressConsole
{
    /** Writes a line to standard error as soon as no output of a job is being written. */
    public function writeLine(string $line): void;

    /** Shows the current progress, unless the output of a job is being written. */
    public function showProgress(): void;
}
