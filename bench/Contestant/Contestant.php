<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;

/** A way to run many shell lines concurrently. */
interface Contestant
{
    /** Returns the name in tables, with the version if it is known. */
    public function label(): string;

    /** Returns why the contestant is not available; null when it is. */
    public function missing(): ?string;

    /**
     * Runs all lines, up to `$concurrency` at once. MUST report each outcome to the tally, or all of them together.
     *
     * A second call MUST have the same concurrency, and MAY reuse processes of the first call. The destructor MUST end
     * everything that the object has started, and wait for its end.
     */
    public function run(Workload $workload, int $concurrency, Tally $tally): void;
}
