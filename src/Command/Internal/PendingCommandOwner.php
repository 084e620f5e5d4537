<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Amp\Cancellation;
use Spindle\Command\CommandResult;

/** Receives the outcomes of commands. Each command causes exactly one call of finished() or failed(). */
interface PendingCommandOwner
{
    /** Returns the caller's cancellation, or null. When the caller cancels, the owner cancels its commands. */
    public function cancellation(): ?Cancellation;

    public function finished(PendingCommand $pending, CommandResult $result): void;

    /** Stops submitting commands, because the pool is being closed. Already submitted commands finish. */
    public function close(): void;

    /** Stops submitting commands, and cancels waiting commands. Running commands finish, and are not retried. */
    public function cancelWaiting(): void;

    /** Receives the reason why a command has no result, such as the death of its launcher. */
    public function failed(PendingCommand $pending, \Throwable $reason): void;
}
