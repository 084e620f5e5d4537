<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\WeakTimer;

/**
 * Ends a deadlock of map() with generator tasks. A worker that runs a generator is busy until the caller has read all
 * items of the generator. map() gives results to the caller in the order of the input. An earlier task may have no
 * worker, because it is retried or its worker has ended. If generators of later tasks keep all workers busy, no worker
 * becomes free for the earlier task. In this case, the pool starts one worker more than its size.
 */
final class StreamDeadlock
{
    /** Seconds until the deadlock counts as certain. A generator with few items needs no reader, and ends earlier. */
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

    /** Returns whether each worker is busy with a map() generator, but the caller's loop waits for an earlier task. */
    private function exists(): bool
    {
        $workers = $this->workers->all();
        foreach ($workers as $worker) {
            $batch = $worker->streamBatch;
            $delaysEarlierTask = $batch?->source instanceof MapRun
                && $batch->source->lacksOutcomeBefore($batch->first + $worker->streamIndex)
                && $worker->createKillFailure === null
                && !$this->backlog->isDelayed($batch->source);
            if (!$delaysEarlierTask) {
                return false;
            }
        }

        return $workers !== [];
    }
}
