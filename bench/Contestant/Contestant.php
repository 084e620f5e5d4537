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
     * It MUST NOT return before everything that it started has ended and been waited for.
     */
    public function run(Workload $workload, int $concurrency, Tally $tally): void;
}
