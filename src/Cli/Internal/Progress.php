<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** Shows how far a run is, on standard error. */
interface Progress
{
    /** Reports changed figures. Called for each job; not every call shows them. */
    public function update(RunStatistics $figures): void;

    /** Clears the progress from the terminal, before other output is written. */
    public function hide(): void;

    /** Shows the figures, changed or not. Called every second, and after {@see hide()}. */
    public function show(RunStatistics $figures): void;

    /** Shows the last figures of the run. */
    public function finish(RunStatistics $figures): void;
}
