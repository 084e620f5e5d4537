<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\WorkerStartException;

/** Events of a {@see Context}. */
interface ContextEvents
{
    /**
     * Called when a worker has ended with all that it started.
     *
     * @param int|null $exitCode null after a signal
     * @param int|null $signal   null after an exit
     * @param int      $peak     memory peak in bytes; 0 if the system does not report it
     */
    public function onEnded(int $id, ?int $exitCode, ?int $signal, int $peak): void;

    /** Called when a worker could not be started. */
    public function onNotStarted(int $id, WorkerStartException $why): void;

    /** Called with standard output or error of a worker. The id is 0 when the worker is unknown. */
    public function onPrinted(int $id, string $bytes, bool $isError): void;

    /**
     * Called when the process that starts the workers has ended, and all workers with it.
     *
     * @param string $how how that process has ended
     */
    public function onLost(string $how): void;
}
