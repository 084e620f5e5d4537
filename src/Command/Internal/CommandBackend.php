<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\LauncherException;

/** An implementation that runs the commands of a pool: launchers on this machine, or a carrier. */
interface CommandBackend
{
    /** @throws LauncherException */
    public function refresh(int $concurrency): void;

    /**
     * Takes a command. It is sent by {@see flush()}, or earlier.
     *
     * @throws LauncherException
     */
    public function assign(PendingCommand $pending, int $concurrency): void;

    /** Ends the command or takes it from the queue. Sent by {@see flush()}. */
    public function cancel(PendingCommand $pending): void;

    /** Takes the command from the queue if it does not run. Sent by {@see flush()}. */
    public function withdraw(PendingCommand $pending): void;

    /** Frees the slot of a command that has ended. */
    public function release(PendingCommand $pending): void;

    /** Bytes that were not sent or not received yet. */
    public function unsent(): int;

    public function flush(): void;

    /** @return array<int, PendingCommand> all pending commands, by id */
    public function commands(): array;

    /** @return array<int, PendingCommand> commands that run, as far as known without asking, by id */
    public function running(): array;

    /**
     * @param int $before former concurrency
     *
     * @throws LauncherException
     */
    public function resize(int $concurrency, int $before): void;

    /**
     * Returns how many commands can run at once.
     *
     * @throws LauncherException
     */
    public function capacity(int $concurrency): int;

    /** Ends and removes all commands. */
    public function close(): void;

    /** Suspends until the commands that {@see close()} ended have ended, if another process ends them. */
    public function awaitEnd(): void;
}
