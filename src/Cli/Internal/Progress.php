<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** Shows how far a run is, on standard error. */
interface Progress
{
    /** The figures have changed. Called for each job: shows them only so often. */
    public function update(Figures $figures): void;

    /** Something else is about to be written to the terminal: takes off what would be in its way. */
    public function hide(): void;

    /** Shows the figures as they are, changed or not; called every second, and after {@see hide()}. */
    public function show(Figures $figures): void;

    /** The run is over: shows the last figures. */
    public function finish(Figures $figures): void;
}
