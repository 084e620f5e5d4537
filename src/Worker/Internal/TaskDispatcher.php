<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\Cancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\Future\UnhandledFutureError;
use Amp\Internal\FutureState;
use Revolt\EventLoop\FiberLocal;
use Revolt\EventLoop\Internal\DriverSuspension;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Fibers;
use Spindle\Internal\IsolatedCall;
use Spindle\Internal\LoopTurn;
use Spindle\Internal\Preload;
use Spindle\Internal\WeakTimer;
use Spindle\LauncherException;
use Spindle\Worker\PoolClosedException;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\WorkerCrashedException;
use Spindle\Worker\WorkerPoolOptions;
use Spindle\Worker\WorkerStartException;

/** Decides which worker gets which tasks. Every task that leaves a source gets exactly one outcome. */
final class TaskDispatcher
{
    /** Seconds that a running task of an abandoned loop may continue, before its worker is ended. */
    public const LEAVING = 0.02;

    /** Largest number of batches that a worker has at once. */
    private const MAX_BATCHES_PER_WORKER = 2;

    /** A payload of at least this size, in bytes, is sent separately from its header, so that it is not copied. */
    private const MIN_SEPARATE_BYTES = 1 << 16;

    private readonly Workers $workers;
    private readonly Submissions $submissions;
    private readonly TaskSources $sources;
    private readonly Backlog $backlog;
    private readonly Results $results;
    private readonly TaskTimeouts $overdue;
    private readonly PoolActivity $drain;

    private readonly int $owner;

    /** @param \Closure(ContextEvents): Context $context */
    public function __construct(
        int $size,
        TaskRetryPolicy $retry,
        private readonly WorkerPoolOptions $options,
        WorkerSettings $settings,
        \Closure $context,
    ) {
        Preload::classes(
            CannotWaitException::class,
            Fibers::class,
            LoopTurn::class,
            TaskCode::class,
            ValueSerializer::class,
            Submission::class,
            WorkerProtocol::class,
            SharedFlags::class,
            WorkerListener::class,
            TaskOutcome::class,
            PoolClosedException::class,
            WorkerStartException::class,
            WorkerCrashedException::class,
            TaskFailedException::class,
            LauncherException::class,
            DeferredFuture::class,
            FutureState::class,
            Future::class,
            UnhandledFutureError::class,
            DriverSuspension::class,
            FiberLocal::class,
        );
        $this->workers = new Workers(
            $size,
            $options,
            $settings,
            $context,
            $this->fill(...),
            $this->heard(...),
            $this->gone(...),
            $this->cannotStart(...),
        );
        $this->owner = (int) getmypid();
        $this->backlog = new Backlog($this->fill(...));
        $this->overdue = new TaskTimeouts($this->workers, $this->backlog, $options->timeout, $this->fill(...));
        $this->results = new Results($retry, $this->backlog, $this->settled(...), $settings->budget);
        $this->submissions = new Submissions($this->settled(...));
        $this->sources = new TaskSources($this->submissions);
        $this->drain = new PoolActivity($this->workers, $this->sources, $this->results, $this->overdue);
    }

    public function size(): int
    {
        return $this->workers->size;
    }

    /** @return array<string, int> */
    public function figures(): array
    {
        $workers = $this->workers->all();

        return [
            'in_use' => \count(array_filter(
                $workers,
                static fn(WorkerHandle $worker): bool => $worker->batches !== [],
            )),
            'max' => $this->workers->size,
            'workers' => \count($workers),
            'waiting' => $this->submissions->demand() + $this->backlog->tasks(),
            'run_total' => $this->results->run,
            'failed_total' => $this->results->failed,
            'crashed_total' => $this->results->crashed,
        ];
    }

    public function resize(int $size): void
    {
        $this->workers->size = $size;
        $this->workers->shrink();
        $this->fill();
    }

    /** @throws PoolClosedException */
    public function mustBeOpen(): void
    {
        if ($this->drain->isClosed()) {
            throw PoolClosedException::forNew();
        }
    }

    public function submit(Submission $submission, ?Cancellation $cancellation): void
    {
        $this->followUser();
        $this->submissions->add($submission, $cancellation);
        if ($this->submissions->open() === 1) {
            $this->drain->keepLoop();
        }
        $this->fill(true);
    }

    /** Cancels a task. The task fails with this reason once it can have no more effect. */
    public function cancel(Submission $submission, \Throwable $reason): void
    {
        if ($submission->isOver() || $this->isElsewhere()) {
            return;
        }
        $submission->cancelled = $reason;
        if ($this->submissions->withdraw($submission, $reason) || $this->backlog->withdraw($submission, $reason)) {
            return;
        }
        foreach ($this->workers->all() as $worker) {
            foreach ($worker->batches as $batch) {
                $index = $batch->source === $this->submissions ? array_search($submission, $batch->keys, true) : false;
                if ($index === false || $index < $batch->arrived || $index >= $batch->limit) {
                    continue; // the worker no longer has the task: its attempt failed, or the pool took the task back
                }
                $this->overdue->takeBack($worker);
                if (!$submission->isOver() && $worker->running() === [$batch, $index]) {
                    $worker->condemned = [$batch, $index];
                    $this->workers->end($worker, static fn(): \Throwable => $reason);
                }
                $this->fill();

                return;
            }
        }
    }

    public function open(MapRun $run): void
    {
        $this->followUser();
        $this->sources->add($run);
        $this->drain->keepLoop();
    }

    /** Drops the waiting tasks of a map. Tasks that run may continue for `$patience` seconds. */
    public function leave(MapRun $run, float $patience): void
    {
        if ($this->isElsewhere()) {
            return;
        }
        $this->backlog->drop($run);
        foreach ($this->workers->all() as $worker) {
            if (!$this->has($worker, $run)) {
                continue;
            }
            $this->overdue->takeBack($worker);
            if ($patience === 0.0) {
                $this->endIfRunning($worker, $run);
            } else {
                $worker->timers["left {$run->id()}"] = WeakTimer::after(
                    $patience,
                    $this,
                    static function (self $dispatcher) use ($worker, $run): void {
                        unset($worker->timers["left {$run->id()}"]);
                        $dispatcher->endIfRunning($worker, $run);
                    },
                );
            }
        }
        $this->endedIfGone($run);
        $this->fill();
    }

    public function forget(MapRun $run): void
    {
        if ($this->isElsewhere()) {
            return;
        }
        $this->sources->remove($run);
        foreach ($this->workers->all() as $worker) {
            if (isset($worker->codes[$run->id()])) {
                unset($worker->codes[$run->id()]);
                $worker->link?->send(WorkerProtocol::frame(WorkerProtocol::FORGET, $run->id()));
            }
        }
        $this->settled();
    }

    /**
     * Gives tasks to workers that have room, and starts workers if there are more tasks.
     *
     * @param bool $followed whether {@see followUser()} was called just before
     */
    public function fill(bool $followed = false): void
    {
        $workers = $this->workers->all();
        if (($this->hand($workers, $followed) || $this->workers->mayGrow()) && $this->overdue->relieve($workers)) {
            $this->hand($workers);
        }
        if (!$this->workers->mayGrow()) {
            return;
        }
        $missing = $this->workers->missingFor($this->demand());
        if ($missing > 0 && $this->workers->areOutdated()) {
            $this->renew();
            $missing = $this->workers->missingFor($this->demand());
        }
        $this->workers->start($missing);
    }

    /** Replaces the workers if the user of this process has changed. Callers that add tasks call this first. */
    public function followUser(): void
    {
        if ($this->workers->hasOtherUser()) {
            $this->renew();
        }
    }

    public function close(): void
    {
        $this->drain->close();
    }

    public function kill(): void
    {
        $reason = PoolClosedException::killed();
        $workers = $this->workers->all();
        $this->workers->close();
        foreach ($workers as $worker) {
            foreach ($worker->batches as $batch) {
                for ($index = $batch->arrived; $index < $batch->limit; ++$index) {
                    $this->results->abandon($worker, $batch, $index, $reason);
                }
            }
            $worker->batches = [];
        }
        $this->giveUp($reason);
        $this->drain->end();
    }

    /** Closes a pool that is no longer referenced, in the background: its accepted tasks still get their outcomes. */
    public function release(): void
    {
        if ($this->drain->isClosed()) {
            return;
        }
        $isRead = array_filter(
            $this->workers->all(),
            static fn(WorkerHandle $worker): bool => $worker->stream?->get() !== null,
        ) !== [];
        $this->submissions->open() > 0 || $isRead ? $this->drain->release() : $this->kill();
    }

    /**
     * Gives tasks to workers.
     *
     * @param array<int, WorkerHandle> $workers
     * @param bool                     $mayServe whether the workers are known to have the credentials of this process
     *
     * @return bool whether a worker is left with room for more tasks
     */
    private function hand(array $workers, bool $mayServe = false): bool
    {
        for ($depth = 1; $depth <= self::MAX_BATCHES_PER_WORKER; ++$depth) {
            foreach ($workers as $worker) {
                if (\count($worker->batches) >= $depth || ($depth > 1 && $this->overdue->isLate($worker))) {
                    continue;
                }
                $most = $this->workers->allowance($worker);
                if ($most === 0) {
                    continue;
                }
                $batch = $this->backlog->shift($most) ?? $this->sources->next($most, $this->workers->size, $depth > 1);
                if ($batch === null) {
                    return true;
                }
                if (!$mayServe && $this->workers->mustNotServe()) {
                    $this->backlog->add($batch);
                    $this->renew();

                    return false;
                }
                $mayServe = true;
                $this->send($worker, $batch);
            }
        }

        return false;
    }

    /**
     * Replaces the workers by new ones with the present credentials of this process.
     *
     * Running tasks finish. Tasks that were not started move to the new workers if they were submitted by root. Tasks
     * of any other user fail, because the new workers may have more privileges.
     */
    private function renew(): void
    {
        if ($this->isElsewhere()) {
            return;
        }
        $mayMove = $this->workers->areOfRoot();
        foreach ($this->workers->all() as $worker) {
            $this->overdue->takeBack($worker);
            foreach ($worker->batches as $batch) {
                $batch->isStranded = $batch->isStranded || !$mayMove;
            }
        }
        $this->workers->renew();
        if (!$mayMove) {
            $this->giveUp(WorkerStartException::otherCredentials());
        }
    }

    /** Takes back tasks that a worker will not start, or fails them if no other worker may run them. */
    private function putBack(Batch $batch, Batch $rest): void
    {
        if (!$batch->isStranded) {
            $this->backlog->add($rest);

            return;
        }
        foreach (array_keys($rest->tasks) as $index) {
            $rest->source->failed($rest, $index, WorkerStartException::otherCredentials());
        }
    }

    private function demand(): int
    {
        return $this->backlog->count() + $this->sources->demand();
    }

    private function send(WorkerHandle $worker, Batch $batch): void
    {
        $batch->id = ++$worker->lastBatch;
        $id = $batch->source->id();
        $code = '';
        if (!isset($worker->codes[$id]) && $batch->source->code() !== null) {
            $worker->codes[$id] = true;
            $code = WorkerProtocol::frame(WorkerProtocol::CODE, $id, (string) $batch->source->code());
        }
        $worker->batches[] = $batch;
        if (\count($worker->batches) === 1) {
            $this->overdue->isFirst($worker, $batch);
        }
        [$head, $body] = $batch->payload();
        $head = $code . pack('VCV', \strlen($head) + \strlen($body) + 5, WorkerProtocol::TASKS, $batch->id) . $head;
        if (\strlen($body) < self::MIN_SEPARATE_BYTES) {
            $worker->link?->send($head . $body);
        } else {
            $worker->link?->send($head);
            $worker->link?->send($body);
        }
    }

    private function heard(WorkerHandle $worker, int $type, int $id, string $bytes, int $at, int $length): void
    {
        if ($type === WorkerProtocol::RESULTS) {
            $done = $this->results->take($worker, $bytes, $at, $length);
            if ($done === null) {
                $this->workers->distrust($worker);
            } elseif ($done) {
                $this->done($worker, $worker->batches[0]);
            }
        } elseif ($type === WorkerProtocol::ITEMS) {
            $this->results->takeItem($worker, substr($bytes, $at, $length));
        } elseif ($type === WorkerProtocol::REPORT && $this->options->onReport !== null) {
            $report = substr($bytes, $at, $length);
            $onReport = $this->options->onReport;
            IsolatedCall::call(
                static fn() => $onReport(TaskOutcome::value(WorkerProtocol::SERIALIZED, $report, 1, null)),
            );
        }
    }

    private function done(WorkerHandle $worker, Batch $batch): void
    {
        array_shift($worker->batches);
        $batch->source->pace()->learn($batch->arrived, $batch->elapsed, $batch->longest);
        if ($batch->arrived < $batch->limit) {
            // The worker read a limit that excludes these tasks, or stopped because its memory has grown.
            $this->putBack($batch, $batch->slice($batch->arrived, $batch->limit));
        }
        if ($batch->source instanceof MapRun) {
            $this->endedIfGone($batch->source);
        }
        $next = $worker->first();
        if ($next === null) {
            $this->workers->idle($worker);
        } else {
            $this->overdue->isFirst($worker, $next);
        }
        $this->fill();
        $this->drain->checkDrained();
    }

    /** Handles the end of a worker: tasks that it has not started move to others, the rest fail or are retried. */
    private function gone(WorkerHandle $worker): void
    {
        $batches = $worker->batches;
        $running = null;
        $unread = $worker->hasDiedReading() ? $worker->first() : null;
        foreach ($batches as $batch) {
            if ($batch === $unread && $batch->limit > 1) {
                $this->separate($batch);
                continue;
            }
            $started = $batch === $unread ? $batch->limit : min($batch->limit, $worker->started($batch));
            if ($started > $batch->arrived) {
                $running = [$batch, $started - 1];
            }
            $rest = $batch->slice($started, max($started, $batch->limit));
            $batch->limit = $started;
            $this->putBack($batch, $rest);
        }
        $worker->batches = [];
        foreach ($batches as $batch) {
            for ($index = $batch->arrived; $index < $batch->limit; ++$index) {
                $this->results->lost($worker, $batch, $index, [$batch, $index] === $running);
            }
            if ($batch->source instanceof MapRun) {
                $this->endedIfGone($batch->source);
            }
        }
        $this->drain->checkDrained();
    }

    /** Puts back each task in its own batch, so that the next death during reading identifies the task. */
    private function separate(Batch $batch): void
    {
        for ($index = 0; $index < $batch->limit; ++$index) {
            $this->putBack($batch, $batch->slice($index, $index + 1));
        }
        $batch->limit = 0;
    }

    private function cannotStart(WorkerStartException $reason): void
    {
        $this->giveUp($reason);
        $this->drain->checkDrained();
    }

    /** Fails all tasks that no worker has. */
    private function giveUp(\Throwable $reason): void
    {
        $this->backlog->fail($reason);
        $this->sources->abort($reason);
    }

    private function has(WorkerHandle $worker, MapRun $run): bool
    {
        foreach ($worker->batches as $batch) {
            if ($batch->source === $run && $batch->arrived < $batch->limit) {
                return true;
            }
        }

        return false;
    }

    /** Returns whether this is a fork of the pool's process. A fork must not use the shared sockets and marks. */
    private function isElsewhere(): bool
    {
        return $this->owner !== getmypid();
    }

    private function endIfRunning(WorkerHandle $worker, MapRun $run): void
    {
        [$batch, $index] = $worker->running() ?? [null, 0];
        if ($batch?->source === $run && $worker->ending === null && $index >= $batch->arrived) {
            $this->workers->end($worker, static fn(): \Throwable => PoolClosedException::left());
        }
    }

    private function endedIfGone(MapRun $run): void
    {
        if (!$run->isLeft()) {
            return;
        }
        foreach ($this->workers->all() as $worker) {
            if ($this->has($worker, $run)) {
                return;
            }
        }
        $run->ended();
    }

    private function settled(): void
    {
        $this->drain->settled();
    }
}
