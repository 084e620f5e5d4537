<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\WorkerStartException;

interface ContextEvents
{
    /**
     * Called when a worker has ended.
     *
     * @param int|null $exitCode null after a signal, or if unknown
     * @param int|null $signal null after an exit, or if unknown
     * @param int $memoryPeak in bytes; 0 if the system does not report it
     */
    public function onEnded(int $id, ?int $exitCode, ?int $signal, int $memoryPeak): void;

    public function onNotStarted(int $id, WorkerStartException $why): void;

    /** Called when a worker has printed bytes. Id 0 stands for a host and the workers that share its output streams. */
    public function onPrinted(int $id, string $bytes, bool $isError): void;

    /** Called when the process that starts the workers has ended, and all workers with it. `$how` describes its end. */
    public function onLost(string $how): void;
}
