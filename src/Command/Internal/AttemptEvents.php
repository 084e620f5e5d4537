<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandResult;

/**
 * Receives the ends of attempts from a pool's backend, and due starts from its timers. These objects hold the receiver
 * in a weak reference, so that a pool without any other reference is destroyed.
 */
interface AttemptEvents
{
    /** Called when an attempt has ended and its slot is free. The result is not final if the command is retried. */
    public function onEnded(PendingCommand $pending, CommandResult $result): void;

    /**
     * Called when commands have no slot any more and their outcomes will not be known.
     *
     * @param array<int, PendingCommand>        $commands
     * @param \Closure(list<mixed>): \Throwable $reason creates the exception for one owner from its commands' keys
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
