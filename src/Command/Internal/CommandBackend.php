<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandCarrier;
use Spindle\LauncherException;

/** Runs the commands of a pool: in launchers on this machine, or through a carrier ({@see CommandCarrier}). */
interface CommandBackend
{
    /**
     * Prepares for the commands of a run. Launchers that have died are replaced.
     *
     * @throws LauncherException when a launcher can't be started
     */
    public function prepare(int $concurrency): void;

    /**
     * Accepts a command, which runs as soon as a slot is free. {@see flush()} sends it, if nothing has sent it before.
     *
     * @throws LauncherException when a launcher can't be started
     * @throws \ValueError       when a carrier can't encode the command
     */
    public function assign(PendingCommand $pending, int $concurrency): void;

    /** Ends the command, or removes it from the queue. {@see flush()} sends the request. */
    public function cancel(PendingCommand $pending): void;

    /** Removes the command from the queue unless it is running. {@see flush()} sends the request. */
    public function withdraw(PendingCommand $pending): void;

    /** Frees the slot of a command that has ended. */
    public function release(PendingCommand $pending): void;

    /** Returns the number of bytes that {@see flush()} has still to send, or that launchers have not read. */
    public function unsentBytes(): int;

    /** Sends queued commands and requests. */
    public function flush(): void;

    /** @return array<int, PendingCommand> all pending commands, by id */
    public function commands(): array;

    /** @return array<int, PendingCommand> commands that are probably running; launchers are not asked; by id */
    public function running(): array;

    /** @throws LauncherException when the descriptor limit is too low for the concurrency */
    public function resize(int $concurrency, int $previousConcurrency): void;

    /**
     * Returns the largest possible concurrency. Launchers for the present `$concurrency` may have to be started.
     *
     * @throws LauncherException when a launcher can't be started
     */
    public function capacity(int $concurrency): int;

    /** Ends and forgets all commands. Their owners are not notified. */
    public function close(): void;

    /** Suspends until the carrier has ended the commands that {@see close()} cancelled. */
    public function awaitEnd(): void;
}
