<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandResult;

/** Waits for the outcomes of commands. For each command, either finished() or lost() is called, once. */
interface PendingCommandOwner
{
    public function finished(PendingCommand $pending, CommandResult $result): void;

    /** Stops submitting commands. Running commands finish. */
    public function drain(): void;

    /** Called without an outcome: the launcher died, or a callback for the output threw. */
    public function lost(PendingCommand $pending, \Throwable $reason): void;
}
