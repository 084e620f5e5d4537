<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\LauncherException;
use Spindle\Worker\WorkerStartException;

/** Starts and ends workers as processes, forks or threads, and reports to {@see ContextEvents} how they ended. */
interface Context
{
    /**
     * Starts a worker, which connects to the {@see WorkerListener}. A start that fails later is reported as an event.
     *
     * @param array<string, mixed> $settings settings for {@see Process\WorkerBoot}
     *
     * @throws LauncherException|WorkerStartException
     */
    public function start(int $id, #[\SensitiveParameter] array $settings): void;

    /** Ends a worker and all processes that its tasks started. Whatever has not ended after the grace is killed. */
    public function end(int $id): void;

    /** Called when the socket of a worker is closed, so that the end of the worker is reported soon. */
    public function onDisconnected(int $id): void;

    /**
     * Accepts a connection of a process that knows the secret and is not a worker, with the remainder of its greeting.
     * Returns whether the connection was expected.
     */
    public function onConnected(WorkerLink $link, int $type, string $data): bool;

    /** Ends all processes, and passes on what they have written, before {@see close()}. Takes a limited time. */
    public function drain(): void;

    /** Ends all processes, and returns when they have ended. */
    public function close(): void;
}
