<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

final class Slot
{
    public ?Child $current = null;

    /** Replaces the current process when it serves. */
    public ?Child $successor = null;

    public int $startFailures = 0;

    /** Number of consecutive processes that started and ended early. */
    public int $earlyEnds = 0;

    /** When the next process is started if there is none, by hrtime(). */
    public int $startAt = 0;

    public function __construct(public readonly ProcessRole $role) {}
}
