<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\LauncherException;

/** Where the commands of one pool run. */
interface Place
{
    /** @throws LauncherException */
    public function refresh(int $concurrency): void;

    /**
     * Takes charge of a command. It is on its way when {@see flush()} is called, or earlier.
     *
     * @throws LauncherException
     */
    public function assign(Ticket $ticket, int $concurrency): void;

    /** Ends the command or takes it from the queue. Sent by {@see flush()}. */
    public function cancel(Ticket $ticket): void;

    /** Takes the command from the queue unless it runs. Sent by {@see flush()}. */
    public function withdraw(Ticket $ticket): void;

    /** A command is over, and its slot is free. */
    public function release(Ticket $ticket): void;

    /** Bytes on their way. */
    public function unsent(): int;

    public function flush(): void;

    /** @return array<int, Ticket> all that it has, by id */
    public function tickets(): array;

    /** @return array<int, Ticket> those that run, as far as is known without asking, by id */
    public function running(): array;

    /**
     * @param int $before how many could run at once
     *
     * @throws LauncherException
     */
    public function resize(int $concurrency, int $before): void;

    /**
     * How many commands it can run at once.
     *
     * @throws LauncherException
     */
    public function capacity(int $concurrency): int;

    /** Ends all commands and forgets them. */
    public function close(): void;

    /** Suspends until what {@see close()} has ended has ended, where that takes somebody else. */
    public function awaitEnd(): void;
}
