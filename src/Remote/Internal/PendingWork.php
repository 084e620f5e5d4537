<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Worker\ExecutorClosedException;

/** Accepted work that awaits outcomes: a task, a command, a loop over results, or the items of a generator. */
interface PendingWork
{
    /** Called when the executor is being closed: the work must not grow. */
    public function close(): void;

    /** Ends the work with $reason as its outcome. Its jobs are then withdrawn, and no further message follows. */
    public function kill(ExecutorClosedException $reason): void;
}
