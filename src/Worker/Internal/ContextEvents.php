<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\WorkerStartException;

/** What a {@see Context} tells. */
interface ContextEvents
{
    /**
     * A worker has ended, and nothing of it is left.
     *
     * @param int|null $exitCode null after a signal
     * @param int|null $signal   null after an exit
     * @param int      $peak     bytes of memory that it had at most, 0 where the system does not tell
     */
    public function ended(int $id, ?int $exitCode, ?int $signal, int $peak): void;

    public function notStarted(int $id, WorkerStartException $why): void;

    /** What a worker wrote to its standard output or error; of worker 0 when it can't be told whose it is. */
    public function printed(int $id, string $bytes, bool $isError): void;

    /** All workers are gone, for what they were part of is. */
    public function lost(string $how): void;
}
