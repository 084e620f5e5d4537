<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\RunStatistics;

/** Shows how far a run is, on standard error. */
interface Progress
{
    /** Reports changed statistics. Called after each group of output; not every call shows them. */
    public function update(RunStatistics $statistics): void;

    /** Clears the progress from the terminal, before other output is written. */
    public function hide(): void;

    /** Shows the statistics, changed or not. Called every second. */
    public function show(RunStatistics $statistics): void;

    /** Shows the final statistics of the run. */
    public function finish(RunStatistics $statistics): void;
}
