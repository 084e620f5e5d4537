<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\LauncherException;

/**
 * Runs a pool's commands in launchers ({@see LauncherBackend}) or through a transport ({@see TransportBackend}), within
 * the pool's concurrency. Reports the ends of attempts to {@see AttemptEvents}.
 */
interface CommandBackend
{
    /**
     * Prepares for the commands of another caller, such as a new run. Replaces launchers that died.
     *
     * @throws LauncherException when a launcher can't be started, or when this process is a fork
     */
    public function prepare(): void;

    /**
     * Accepts a command. The command is sent with the next {@see flush()}, or earlier, and runs when a slot is free.
     *
     * @throws LauncherException when a launcher can't be started, or when the credentials of this process have changed
     *                           since the first attempt of this command
     * @throws \ValueError       when a transport can't encode the command
     */
    public function assign(PendingCommand $pending): void;

    /** Ends the command if it is running; otherwise removes it from the queue. {@see flush()} sends the request. */
    public function cancel(PendingCommand $pending): void;

    /** Removes the command from the queue unless it is running. {@see flush()} sends the request. */
    public function withdraw(PendingCommand $pending): void;

    /** Returns the number of bytes that wait for {@see flush()}, or for space in the pipes to the launchers. */
    public function unsentBytes(): int;

    public function flush(): void;

    /** @return array<int, PendingCommand> commands that were assigned, and wait or run now, by id */
    public function commands(): array;

    /** @return array<int, PendingCommand> commands that probably run, by id. The backend does not ask the launchers */
    public function running(): array;

    /** Starts no more commands while the backend is paused. */
    public function setPaused(bool $isPaused): void;

    /** @throws LauncherException when the descriptor limit is too low, or when a launcher can't be started */
    public function resize(int $concurrency): void;

    /**
     * Returns the largest possible concurrency. Starts launchers if necessary, and suspends until a launcher is ready.
     *
     * @throws LauncherException when a launcher can't be started
     */
    public function maxConcurrency(): int;

    /** Ends all commands and launchers, and forgets the commands. Does not notify the owners of the commands. */
    public function close(): void;

    /** Suspends until the transport has ended the commands that {@see close()} cancelled. */
    public function awaitEnd(): void;
}
