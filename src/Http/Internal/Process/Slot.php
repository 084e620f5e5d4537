<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** The processes of one role: the current process, and the process that will replace it. */
final class Slot
{
    public ?Child $current = null;

    public ?Child $successor = null;

    public int $startFailures = 0;

    /** Number of consecutive processes that began to serve, and ended soon afterwards. */
    public int $earlyEnds = 0;

    /** Time by hrtime() at which a process is started if there is neither a current one nor a successor. */
    public int $startAt = 0;

    public function __construct(public readonly ProcessRole $role) {}
}
