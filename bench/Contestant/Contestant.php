<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;

/** A way of running many shell lines at once. */
interface Contestant
{
    /** What tables call it, with its version where that is known. */
    public function label(): string;

    /** Why it can't take part here; null when it can. */
    public function missing(): ?string;

    /**
     * Runs all lines, so many at once, and MUST tell the tally each outcome, or all of them together.
     *
     * A second call MUST have the same concurrency; it MAY use what the first has started. When the object is gone,
     * nothing that it started is left, and everything has been waited for.
     */
    public function run(Workload $workload, int $concurrency, Tally $tally): void;
}
