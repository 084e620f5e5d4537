<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Amp\Cancellation;
use Spindle\Command\CommandResult;

/** Receives the outcomes of one run() or execute() call: one call of finished() or failed() for each command. */
interface PendingCommandOwner
{
    /** Returns the caller's cancellation, which cancels all commands of this owner; null if the caller passed none. */
    public function cancellation(): ?Cancellation;

    public function finished(PendingCommand $pending, CommandResult $result): void;

    /** Stops submitting commands, because the pool is being closed. Already submitted commands finish. */
    public function close(): void;

    /** Only for {@see Run}: submits no more commands, and cancels waiting ones. Running ones are not retried. */
    public function cancelWaiting(): void;

    /** Receives the reason why a command has no result, such as the death of its launcher. */
    public function failed(PendingCommand $pending, \Throwable $reason): void;
}
