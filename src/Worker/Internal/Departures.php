<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\WeakTimer;

/**
 * Has workers end: as soon as they have nothing to do, or at once, and by force when they take too long.
 */
final class Departures
{
    /** Seconds that a worker has to end by itself once it is told to. */
    public const FAREWELL = 2.0;

    /** Seconds that the system has to tell how a worker ended whose socket is closed, before it is made to end. */
    private const TELLING = 1.0;

    /** Workers that get no more tasks, and are not gone. */
    private int $count = 0;

    public function count(): int
    {
        return $this->count;
    }

    /** It gets no more tasks, and ends when those that it has are done; to be called again then. */
    public function stop(WorkerHandle $worker): void
    {
        $this->count += $worker->isLeaving() ? 0 : 1;
        $worker->retiring = true;
        if ($worker->batches === [] && $worker->link !== null && !$worker->stopping) {
            $worker->stopping = true;
            $worker->link->send(Protocol::frame(Protocol::STOP, 0));
            $this->endIn(self::FAREWELL, $worker); // what it does at its end may take too long
        }
    }

    /**
     * It ends, with all that its task has started.
     *
     * @param \Closure(Batch, int): \Throwable $reason the outcome of the task that runs
     */
    public function end(WorkerHandle $worker, \Closure $reason): void
    {
        if ($worker->ending === null) {
            $this->count += $worker->isLeaving() ? 0 : 1;
            $worker->ending = $reason;
            $worker->crew->context->end($worker->id);
            $worker->link?->send(Protocol::frame(Protocol::STOP, 0)); // a thread that waits for a frame is not ended before it has one
        }
    }

    /** Nothing more will come of it: it has ended, or is made to. */
    public function disconnected(WorkerHandle $worker, ?string $wrong): void
    {
        if ($wrong !== null) {
            $worker->wrote("{$wrong}\n");
        }
        if ($worker->exit === null) { // or it is being buried
            $worker->crew->context->disconnected($worker->id);
            $this->endIn($wrong === null ? self::TELLING : 0.0, $worker);
        }
    }

    /** It is gone. */
    public function forget(WorkerHandle $worker): void
    {
        $this->count -= $worker->isLeaving() ? 1 : 0;
    }

    private function endIn(float $seconds, WorkerHandle $worker): void
    {
        $worker->timers[] = WeakTimer::after($seconds, $worker, static function (WorkerHandle $worker): void {
            $worker->crew->context->end($worker->id);
        });
    }
}
