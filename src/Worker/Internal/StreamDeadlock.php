<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\WeakTimer;

/**
 * Ends a deadlock of map() with generator tasks. A worker is busy with such a task until its items are read, and map()
 * reads them in the order of the input. An earlier task may wait for a worker, because it is retried or because its
 * worker has ended. If all workers are busy with generators of later tasks, no worker ever becomes free for the earlier
 * task. In this case, the pool starts one worker more than its size.
 */
final class StreamDeadlock
{
    /** Seconds after which the deadlock is certain: by then, a generator with few items has ended without a reader. */
    private const CERTAIN_AFTER = 0.1;

    private ?string $timer = null;

    public function __construct(
        private readonly Workers $workers,
        private readonly Backlog $backlog,
        private readonly TaskTimeouts $timeouts,
    ) {}

    /** Called after tasks were given to workers, and when a generator has begun. */
    public function check(): void
    {
        if ($this->timer === null && $this->exists()) {
            $this->timer = WeakTimer::after(self::CERTAIN_AFTER, $this, static function (self $deadlock): void {
                $deadlock->timer = null;
                if ($deadlock->exists()) {
                    array_map($deadlock->timeouts->takeBack(...), $deadlock->workers->all());
                    $deadlock->workers->startExtra();
                }
            });
        }
    }

    /** Returns whether all workers are busy with generators of map() whose loop waits for outcomes of earlier tasks. */
    private function exists(): bool
    {
        $workers = $this->workers->all();
        foreach ($workers as $worker) {
            $batch = $worker->streamBatch;
            $isUnreachable = $batch?->source instanceof MapRun
                && $batch->source->lacksOutcomeBefore($batch->first + $worker->streamIndex)
                && $worker->createKillFailure === null
                && !$this->backlog->isDelayed($batch->source);
            if (!$isUnreachable) {
                return false;
            }
        }

        return $workers !== [];
    }
}
