<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\WorkerStartException;

/** Events that the parts of a pool report. {@see TaskDispatcher} handles them. */
interface PoolEvents
{
    /** Gives tasks to workers, and starts workers. Called when a worker can take a batch, or tasks must run again. */
    public function fill(): void;

    /** Handles a frame of a worker: `$length` bytes of payload, at the offset `$at` of `$bytes`. */
    public function receive(WorkerHandle $worker, int $type, int $id, string $bytes, int $at, int $length): void;

    public function workerEnded(WorkerHandle $worker): void;

    /** Called when tasks must fail, because no worker can be started. */
    public function startFailed(WorkerStartException $reason): void;

    /** Called when all submitted tasks have outcomes, and when a generator task begins to yield items or has ended. */
    public function onSettled(): void;

    /** Called when the reader of a generator task has released the generator before its end. */
    public function streamReleased(WorkerHandle $worker, Batch $batch, int $index): void;

    /** Called when PHP destroys a part of the pool, see {@see WorkerEvents::partDestroyed()}. */
    public function partDestroyed(): void;

    /** Called in a fork of the pool's process, if the fork runs the event loop while tasks have no outcome. */
    public function failInFork(): void;
}
