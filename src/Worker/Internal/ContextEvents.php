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
     * @param int|null $signal   null after an exit, or if unknown
     * @param int      $peak     memory peak in bytes; 0 if the system does not report it
     */
    public function onEnded(int $id, ?int $exitCode, ?int $signal, int $peak): void;

    public function onNotStarted(int $id, WorkerStartException $why): void;

    /** Called with standard output or error of a worker; with id 0 if the worker shares it with others of its host. */
    public function onPrinted(int $id, string $bytes, bool $isError): void;

    /** Called when the process that starts the workers has ended, as `$how` describes, and all workers with it. */
    public function onLost(string $how): void;
}
