<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\WeakTimer;

/** Ends workers: when they have nothing to do, or immediately. Kills those that take too long. */
final class WorkerShutdown
{
    /** Seconds after the STOP frame in which a worker must end, before it is terminated. */
    public const STOP_TIMEOUT = 2.0;

    /** Seconds to wait for the exit status after the socket closed, before the worker is terminated. */
    private const EXIT_STATUS_TIMEOUT = 1.0;

    /** Number of workers that get no more tasks and have not ended. */
    private int $endingCount = 0;

    public function endingCount(): int
    {
        return $this->endingCount;
    }

    /** Ends a worker after its current tasks. Must be called again when these are done. */
    public function stop(WorkerHandle $worker): void
    {
        $this->endingCount += $worker->getsNoMoreTasks() ? 0 : 1;
        $worker->retiring = true;
        if ($worker->batches === [] && $worker->link !== null && !$worker->stopping) {
            $worker->stopping = true;
            $worker->link->send(WorkerProtocol::frame(WorkerProtocol::STOP, 0));
            $this->endIn(self::STOP_TIMEOUT, $worker); // shutdown functions of the worker may take too long
        }
    }

    /** @param \Closure(Batch, int): \Throwable $reason failure of the task that runs */
    public function end(WorkerHandle $worker, \Closure $reason): void
    {
        if ($worker->createEndFailure === null) {
            $this->endingCount += $worker->getsNoMoreTasks() ? 0 : 1;
            $worker->createEndFailure = $reason;
            $worker->group->context->end($worker->id);
            // a thread that waits for a frame ends only when a frame arrives
            $worker->link?->send(WorkerProtocol::frame(WorkerProtocol::STOP, 0));
        }
    }

    /** Called when the connection has ended. Waits for the exit status; after a protocol error, ends the worker. */
    public function disconnected(WorkerHandle $worker, ?string $protocolError): void
    {
        if ($protocolError !== null) {
            $worker->appendStderr("{$protocolError}\n");
        }
        if ($worker->exit === null) { // otherwise its end is being handled
            $worker->group->context->onDisconnected($worker->id);
            $this->endIn($protocolError === null ? self::EXIT_STATUS_TIMEOUT : 0.0, $worker);
        }
    }

    public function forget(WorkerHandle $worker): void
    {
        $this->endingCount -= $worker->getsNoMoreTasks() ? 1 : 0;
    }

    private function endIn(float $seconds, WorkerHandle $worker): void
    {
        $worker->timers[] = WeakTimer::after($seconds, $worker, static function (WorkerHandle $worker): void {
            $worker->group->context->end($worker->id);
        });
    }
}
