<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\WorkerStartException;

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

    public function onNotStarted(int $id, WorkerStartException $why): void;

    /** Called with standard output or error of a worker. The id is 0 when the worker is unknown. */
    public function onPrinted(int $id, string $bytes, bool $isError): void;

    /** Called when the process that starts the workers has ended, as `$how` describes, and all workers with it. */
    public function onLost(string $how): void;
}
