<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** A place for one process after the other. */
final class Slot
{
    public ?Child $current = null;

    /** Will take over when it serves. */
    public ?Child $successor = null;

    /** Processes in a row that did not come up. */
    public int $failures = 0;

    /** Processes in a row that came up and ended soon. */
    public int $deaths = 0;

    /** When the next process is started, by hrtime(), where there is none. */
    public int $startAt = 0;

    public function __construct(public readonly Duty $duty) {}
}
