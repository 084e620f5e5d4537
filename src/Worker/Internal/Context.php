<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\LauncherException;
use Spindle\Worker\WorkerStartException;

/** What starts workers, ends them, and tells {@see ContextEvents} how they ended: processes, forks or threads. */
interface Context
{
    /**
     * Starts a worker, which then connects to the pool's {@see Reception}, or of which {@see ContextEvents::ended()} tells.
     *
     * @param array<string, mixed> $settings of {@see Process\Boot}
     *
     * @throws LauncherException|WorkerStartException
     */
    public function start(int $id, #[\SensitiveParameter] array $settings): void;

    /** Has a worker end, with all that its tasks have started: at once if it can, or after the pool's grace by force. */
    public function end(int $id): void;

    /** A worker's socket is closed: how it ended is to be told. */
    public function disconnected(int $id): void;

    /**
     * Takes a connection of a process that knows the secret and is no worker.
     *
     * @param string $words that came with its greeting
     *
     * @return bool whether it was expected
     */
    public function connected(Link $link, int $type, string $words): bool;

    /** Ends everything, and returns when it has. */
    public function close(): void;
}
