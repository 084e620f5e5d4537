<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\WeakTimer;
use Spindle\Worker\WorkerStartException;

/**
 * Ends a deadlock of map() with generator tasks. A worker that runs a generator is busy until the caller has read all
 * items of the generator. map() gives results to the caller in the order of the input. The first task without an
 * outcome may have no worker, because the task is retried or its worker has ended. If generators of later tasks and
 * tasks of other callers occupy all workers, the task may wait for ever. Then the pool starts an extra worker. If no
 * worker can be started, the map fails.
 */
final class StreamDeadlock
{
    /** Seconds until the deadlock counts as certain. A generator with few items needs no reader, and ends earlier. */
    private const CERTAIN_AFTER = 0.1;

    private ?string $timer = null;

    /** @var \WeakMap<MapRun, int> id of the last extra worker that was started for the map */
    private \WeakMap $extras;

    public function __construct(
        private readonly Workers $workers,
        private readonly Backlog $backlog,
        private readonly TaskTimeouts $timeouts,
    ) {
        $this->extras = new \WeakMap();
    }

    /** Called after tasks were given to workers, and when a generator has begun. */
    public function check(): void
    {
        if ($this->timer === null && $this->blockedMaps() !== []) {
            $this->timer = WeakTimer::after(self::CERTAIN_AFTER, $this, static function (self $deadlock): void {
                $deadlock->timer = null;
                $maps = $deadlock->blockedMaps();
                $failure = $maps === [] ? null : $deadlock->workers->backoff->takeFailure();
                foreach ($maps as $map) {
                    $deadlock->end($map, $failure);
                }
            });
        }
    }

    /**
     * Returns the task for which an extra worker was started, if the task still waits. The batch has no second task: if
     * a second task were a generator, and the first task failed, the retry of the first task would find no free worker.
     */
    public function taskFor(WorkerHandle $worker): ?Batch
    {
        foreach ($this->extras as $map => $id) {
            if ($id === $worker->id) {
                return $this->backlog->shiftTask($map, (int) $map->firstOpen());
            }
        }

        return null;
    }

    /** @return array<int, MapRun> maps whose first task without outcome has no worker, but a later generator has one */
    private function blockedMaps(): array
    {
        $maps = [];
        foreach ($this->workers->all as $worker) {
            if ($worker->batches === [] || $worker->createKillFailure !== null) {
                return []; // the worker is starting, idle or ending, so the task soon gets a worker
            }
            $map = $worker->streamBatch?->source;
            $firstOpen = $map instanceof MapRun ? $map->firstOpen() : null;
            if ($map instanceof MapRun && $firstOpen !== null && self::streamNumber($worker) > $firstOpen) {
                $maps[$map->id()] = $map;
            }
        }

        return array_filter($maps, $this->isBlocked(...));
    }

    private function isBlocked(MapRun $map): bool
    {
        if ($map->isAbandoned() || $this->backlog->isDelayed($map, $map->firstOpen())) {
            return false;
        }
        foreach ($this->workers->all as $worker) {
            // If a worker has a generator that the caller reads before the first open task, the worker becomes free.
            $isReadEarlier = $worker->streamBatch?->source === $map && self::streamNumber($worker) < $map->firstOpen();
            if ($isReadEarlier || self::hasFirstOpen($map, $worker->batches[0])) {
                return false;
            }
        }

        return true;
    }

    private function end(MapRun $map, ?WorkerStartException $failure): void
    {
        foreach ($this->workers->all as $worker) {
            foreach ($worker->batches as $batch) {
                if (self::hasFirstOpen($map, $batch)) {
                    $this->timeouts->takeBackBatch($worker, $batch);
                }
            }
        }
        if ($failure === null) {
            $this->extras[$map] = $this->workers->startExtra();
        } else {
            $map->fail($failure, UnwantedTasks::TIMEOUT);
        }
    }

    /** Returns whether the worker of the batch will give the first open task an outcome, or another attempt. */
    private static function hasFirstOpen(MapRun $map, Batch $batch): bool
    {
        return $batch->source === $map
            && $batch->first + $batch->receivedCount <= $map->firstOpen()
            && $map->firstOpen() < $batch->first + $batch->limit;
    }

    /** Returns the number of the generator task that the worker runs, among the tasks of its map. */
    private static function streamNumber(WorkerHandle $worker): int
    {
        return (int) $worker->streamBatch?->first + $worker->streamIndex;
    }
}
