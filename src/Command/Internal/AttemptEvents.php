<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandResult;

/**
 * Receives what happens to the attempts of commands, from the backend and the delays of a pool. They hold only a weak
 * reference to it, so that a pool without any other reference is destroyed.
 */
interface AttemptEvents
{
    /** Called when an attempt has ended and its slot is free. The result is not final if the command is retried. */
    public function onEnded(PendingCommand $pending, CommandResult $result): void;

    /**
     * Called when commands have no slot any more and their outcomes will not be known.
     *
     * @param array<int, PendingCommand>        $commands
     * @param \Closure(list<mixed>): \Throwable $reason   returns the exception for the keys of one owner
     */
    public function onLost(array $commands, \Closure $reason): void;

    /** Called when a command has no slot any more, because there were no descriptors or processes to start it. */
    public function onExhausted(PendingCommand $pending): void;

    /** Called when a command has to be started again: its pause is over, or its launcher has died. */
    public function onRetryDue(PendingCommand $pending): void;

    /** Called when a slot is free and {@see DelayedStarts} lets a command start. */
    public function onStartDue(PendingCommand $pending): void;

    public function hasFreeSlot(): bool;
}
