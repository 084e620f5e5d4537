<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\WorkerStartException;

/** Events of the process or the connection of a worker. {@see Workers} handles them. */
interface WorkerEvents
{
    /** Called when a worker has ended, or could not be started. {@see WorkerHandle::$exit} is set. */
    public function ended(WorkerHandle $worker): void;

    /** Called when a worker was not ready within the start timeout, or its connection cannot be accepted. */
    public function failedToStart(WorkerHandle $worker, WorkerStartException $why): void;

    /** Called when a worker gets no more tasks from now on, because it is stopping or is being ended. */
    public function startedToEnd(): void;

    public function received(WorkerHandle $worker, int $type, int $id, string $bytes, int $at, int $length): void;

    public function printed(string $bytes, bool $isError): void;

    /**
     * Called when PHP destroys the object of a process or connection that the pool still uses. PHP does this at the
     * end of the script. Destructors of the application may run after that, and may use the pool.
     */
    public function partDestroyed(): void;
}
