<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\WorkerStartException;

/** Starts and ends workers as processes, forks or threads, and reports to {@see ContextEvents} how they ended. */
interface Context
{
    /**
     * Starts a worker, which then connects to the {@see WorkerListener}. If the start fails later,
     * {@see ContextEvents::onNotStarted()} is called.
     *
     * @param array<string, mixed> $settings settings for {@see Process\WorkerBoot}
     *
     * @throws WorkerStartException
     */
    public function start(int $id, #[\SensitiveParameter] array $settings): void;

    /** Ends a worker and, unless it is a thread, the processes of its tasks. Kills them after the grace period. */
    public function end(int $id): void;

    /** Called when the socket of a worker was closed. A host of forks then checks whether the worker has ended. */
    public function onDisconnected(int $id): void;

    /**
     * Accepts the connection of this context's host: the process whose forks or threads are workers. Returns false for
     * any other process, even if that process knows the pool's secret.
     *
     * @param string $data the `$data` that the process has passed to {@see WorkerProtocol::greeting()}
     */
    public function onConnected(WorkerLink $link, int $type, string $data): bool;

    /** Called before {@see close()}. Ends all processes, and reports their last output. Takes at most about 2 s. */
    public function drain(): void;

    public function close(): void;
}
