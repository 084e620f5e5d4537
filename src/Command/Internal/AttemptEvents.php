<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandResult;

/**
 * Receives events of a pool's backend and timers, such as the start or end of an attempt: one execution of a command.
 * The backend and the timers have only a weak reference to the receiver. So PHP destroys the pool when the application
 * no longer refers to the pool.
 */
interface AttemptEvents
{
    /** Called when a launcher has reported the start of an attempt, see {@see PendingCommand::$started}. */
    public function onStarted(PendingCommand $pending): void;

    /** Called when an attempt has ended and its slot is free. The result is not final if the command is retried. */
    public function onEnded(PendingCommand $pending, CommandResult $result): void;

    /**
     * Called when the outcomes of commands will never be known, for example after a fork. The commands' slots are free.
     *
     * @param array<int, PendingCommand>        $commands
     * @param \Closure(list<mixed>): \Throwable $reason creates the exception of one run() or execute() call from
     *                                                  the keys of the call's commands
     */
    public function onLost(array $commands, \Closure $reason): void;

    /**
     * Ends all commands and the pool. Also called when PHP destroys a launcher at the end of the script. Otherwise,
     * destructors that PHP calls later could wait forever for the commands.
     *
     * @param (\Closure(list<mixed>): \Throwable)|null $reason see {@see onLost()}; null if the application calls kill()
     */
    public function kill(?\Closure $reason = null): void;

    /** Called when a command could not start for lack of a descriptor or process. The command's slot is free. */
    public function onExhausted(PendingCommand $pending): void;

    /** Called when a command has to be started again: its pause is over, or its launcher has died. */
    public function onRetryDue(PendingCommand $pending): void;

    /** Called when a slot is free and {@see DelayedStarts} lets a command start. */
    public function onStartDue(PendingCommand $pending): void;

    public function hasFreeSlot(): bool;
}
