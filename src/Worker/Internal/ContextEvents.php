<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\WorkerStartException;

interface ContextEvents
{
    /**
     * @param int|null $exitCode null after a signal, or if unknown
     * @param int|null $signal null after an exit, or if unknown
     * @param int $memoryPeak in bytes; 0 if the system does not report it
     */
    public function onEnded(int $id, ?int $exitCode, ?int $signal, int $memoryPeak): void;

    public function onNotStarted(int $id, WorkerStartException $why): void;

    /** Called when a worker has printed bytes. Id 0 means the host, or any worker that shares the host's output. */
    public function onPrinted(int $id, string $bytes, bool $isError): void;

    /** Called when all workers have ended, because the process that starts them has ended. `$how` describes its end. */
    public function onLost(string $how): void;

    /** Called when PHP destroys a {@see ProcessContext} that is in use, see {@see WorkerEvents::partDestroyed()}. */
    public function onDestroyed(): void;
}
