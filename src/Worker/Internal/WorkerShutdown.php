<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\WeakTimer;

/** Ends workers: as soon as they have nothing to do, or at once, and by force when they take too long. */
final class WorkerShutdown
{
    /** Seconds between a worker's order to stop and its end by force. */
    public const STOP_TIMEOUT = 2.0;

    /** Seconds to wait for the exit status after the socket closed, before the worker is ended by force. */
    private const EXIT_STATUS_TIMEOUT = 1.0;

    /** Number of workers that get no more tasks and have not ended. */
    private int $endingCount = 0;

    public function endingCount(): int
    {
        return $this->endingCount;
    }

    /** Ends a worker after its current tasks: call this again when those are done. */
    public function stop(WorkerHandle $worker): void
    {
        $this->endingCount += $worker->isEnding() ? 0 : 1;
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
        if ($worker->ending === null) {
            $this->endingCount += $worker->isEnding() ? 0 : 1;
            $worker->ending = $reason;
            $worker->group->context->end($worker->id);
            // a thread that waits for a frame ends only when a frame arrives
            $worker->link?->send(WorkerProtocol::frame(WorkerProtocol::STOP, 0));
        }
    }

    /** Called when the connection has ended. Waits for the exit status, or ends the worker after a protocol error. */
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
        $this->endingCount -= $worker->isEnding() ? 1 : 0;
    }

    private function endIn(float $seconds, WorkerHandle $worker): void
    {
        $worker->timers[] = WeakTimer::after($seconds, $worker, static function (WorkerHandle $worker): void {
            $worker->group->context->end($worker->id);
        });
    }
}
