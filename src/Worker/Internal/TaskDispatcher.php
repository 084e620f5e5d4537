<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\Future\UnhandledFutureError;
use Amp\Internal\FutureState;
use Revolt\EventLoop\FiberLocal;
use Revolt\EventLoop\Internal\DriverSuspension;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\LoopTurn;
use Spindle\Internal\Async\OneShot;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Clock;
use Spindle\Internal\IsolatedCall;
use Spindle\Internal\Launcher\HelperCode;
use Spindle\Internal\OneWayGenerator;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\Preload;
use Spindle\Internal\ReportDelivery;
use Spindle\LauncherException;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\PortableOutcome;
use Spindle\Worker\RetryLaterException;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\Thrown;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerCrashedException;
use Spindle\Worker\WorkerPoolOptions;
use Spindle\Worker\WorkerStartException;

/** Decides which worker gets which tasks. Each task gets exactly one outcome, unless the caller left the map() loop. */
final class TaskDispatcher implements PoolEvents
{
    /** Largest number of batches that a worker has at the same time: the current batch and the next one. */
    private const MAX_BATCHES_PER_WORKER = 2;

    private readonly Workers $workers;
    private readonly Submissions $submissions;
    private readonly Backlog $backlog;
    private readonly OutcomeHandler $outcomes;
    private readonly TaskTimeouts $timeouts;
    private readonly UnwantedTasks $unwanted;
    private readonly PoolActivity $activity;
    private readonly WorkerReplacement $replacement;
    private readonly StreamDeadlock $deadlock;
    private readonly int $ownerPid;

    /** @param \Closure(ContextEvents): Context $context */
    public function __construct(
        int $size,
        TaskRetryPolicy $retry,
        private readonly WorkerPoolOptions $options,
        WorkerSettings $settings,
        \Closure $context,
    ) {
        self::preload();
        $this->workers = new Workers($size, $options, $settings, $context, $this);
        $this->ownerPid = (int) getmypid();
        $this->backlog = new Backlog($this);
        $this->timeouts = new TaskTimeouts($this->workers, $this->backlog, $options->timeout, $this);
        $this->outcomes = new OutcomeHandler($retry, $this->backlog, $this, $settings->budget);
        $this->submissions = new Submissions($this);
        $this->unwanted = new UnwantedTasks($this->workers, $this->submissions, $this->backlog, $this->timeouts, $this);
        $this->activity = new PoolActivity(
            $this->workers,
            $this->submissions,
            $this->backlog,
            $this->outcomes,
            $this->timeouts,
            $this,
        );
        $this->replacement = new WorkerReplacement($this->workers, $this->timeouts, $this->activity);
        $this->deadlock = new StreamDeadlock($this->workers, $this->backlog, $this->timeouts);
    }

    /** Loads classes early: later, this process may have no free descriptor to open their files. */
    private static function preload(): void
    {
        Preload::load(
            CannotWaitException::class,
            Condition::class,
            LoopTurn::class,
            TaskCode::class,
            ValueSerializer::class,
            SerializabilityCheck::class,
            SerializationKind::class,
            SerializeLock::class,
            SerializationFailure::class,
            ValuePath::class,
            DetachedCall::class,
            OneShot::class,
            OwnLoop::class,
            Submission::class,
            SharedFlags::class,
            WorkerListener::class,
            TaskOutcome::class,
            ExecutorClosedException::class,
            WorkerStartException::class,
            WorkerCrashedException::class,
            TaskFailedException::class,
            UnserializableException::class,
            Thrown::class,
            RetryLaterException::class,
            Clock::class,
            LauncherException::class,
            DeferredFuture::class,
            FutureState::class,
            Future::class,
            UnhandledFutureError::class,
            DriverSuspension::class,
            FiberLocal::class,
            IsolatedCall::class,
            ItemStream::class,
            WorkerItems::class,
            OneWayGenerator::class,
            TaskTimeoutException::class,
        );
        HelperCode::record(HelperCode::LAUNCHER);
        HelperCode::record(HelperCode::WORKER);
    }

    public function size(): int
    {
        return $this->workers->size;
    }

    /** @return array<string, int> */
    public function statistics(): array
    {
        return [
            'in_use' => $this->workers->inUseCount(),
            'max' => $this->workers->size,
            'workers' => \count($this->workers->all),
            'waiting' => $this->submissions->demand() + $this->backlog->taskCount(),
            'attempts_total' => $this->outcomes->attemptCount,
            'failed_total' => $this->outcomes->failedCount,
            'crashed_total' => $this->outcomes->crashedCount,
        ];
    }

    public function resize(int $size): void
    {
        $this->workers->size = $size;
        $this->workers->shrink();
        $this->fill();
    }

    /** @throws ExecutorClosedException */
    public function mustBeOpen(): void
    {
        $this->activity->mustBeOpen();
    }

    public function submit(Submission $submission, ?Cancellation $cancellation): void
    {
        $this->submissions->add($submission, $cancellation);
        if ($this->submissions->openCount === 1) {
            $this->activity->updateLoopReference();
        }
        try {
            $this->fill(true);
        } catch (\Throwable $failure) {
            $this->cancel($submission, $failure); // the caller gets no future, and may submit the task again
            throw $failure;
        }
    }

    public function cancel(Submission $submission, \Throwable $reason): void
    {
        if (!$submission->isOver() && !$this->isInFork()) {
            $this->unwanted->cancel($submission, $reason);
        }
    }

    public function cancelWaiting(): void
    {
        foreach ($this->workers->all as $worker) {
            $this->timeouts->takeBack($worker);
        }
        $this->activity->abort(new CancelledException());
    }

    public function open(MapRun $run): void
    {
        $this->activity->add($run);
    }

    public function abandon(MapRun $run, float $timeout): void
    {
        if (!$this->isInFork()) {
            $this->unwanted->abandon($run, $timeout);
        }
    }

    /** Removes a map() call that has ended. The workers then drop the code of its tasks. */
    public function forget(MapRun $run): void
    {
        if ($this->isInFork()) {
            return;
        }
        $this->activity->remove($run);
        foreach ($this->workers->all as $worker) {
            $worker->forgetCode($run->id());
        }
        $this->onSettled();
    }

    /** Takes back unstarted tasks of a map() call with a full result queue. The tasks wait until the queue has room. */
    public function takeBackBlocked(MapRun $run): void
    {
        $this->timeouts->takeBackBlocked($run);
    }

    /**
     * Gives tasks to workers that can take another batch, and starts workers if tasks are left.
     *
     * @param bool $areWorkersCurrent whether {@see replaceOutdatedWorkers()} was called just before
     */
    public function fill(bool $areWorkersCurrent = false): void
    {
        if (!$areWorkersCurrent && $this->isInFork()) {
            return;
        }
        $workers = $this->workers->all;
        $hasRoom = $this->assign($workers, $areWorkersCurrent) || $this->workers->mayGrow();
        if ($hasRoom && $this->timeouts->takeBackOverdue($workers)) {
            $this->assign($workers);
        }
        if ($this->outcomes->openStreamCount > 0) {
            $this->deadlock->check();
        }
        if (!$this->workers->mayGrow()) {
            return;
        }
        $missing = $this->workers->missingFor($this->activity->demand());
        if ($missing > 0 && $this->workers->group()->hasFormerCredentials()) {
            $this->replacement->replaceForCredentials();
            $missing = $this->workers->missingFor($this->activity->demand());
        }
        $this->workers->start($missing);
    }

    /** Must be called before {@see submit()} and {@see open()}. The logger may close the pool in this call. */
    public function replaceOutdatedWorkers(): void
    {
        $this->replacement->replaceOutdated();
    }

    /** @throws CancelledException if $cancellation is requested; close() kills the pool before it throws */
    public function close(?Cancellation $cancellation): void
    {
        try {
            $this->activity->close($cancellation);
        } catch (CancelledException $cancelled) {
            if ($this->isInFork()) {
                throw ExecutorClosedException::forked();
            }
            $this->kill();
            throw $cancelled;
        }
    }

    /** @param bool $readsOutput whether to wait for the last output of tasks and pass it on */
    public function kill(bool $readsOutput = false, ?ExecutorClosedException $reason = null): void
    {
        $workers = $this->workers->all;
        $this->workers->close($readsOutput);
        $this->failAll($workers, $reason ?? ExecutorClosedException::killed());
        $this->activity->end();
    }

    /** Called when PHP destroys the pool. Ends it after submitted tasks and read generators; at once in a new loop. */
    public function poolDestroyed(): void
    {
        if ($this->activity->isClosed) {
            return;
        }
        $isInUse = !$this->activity->isInOtherLoop()
            && ($this->submissions->openCount > 0 || $this->workers->hasReader());
        $isInUse ? $this->activity->closeForDestroyedPool() : $this->kill(true, ExecutorClosedException::destroyed());
    }

    /** Fails all tasks. Otherwise a destructor that PHP calls later would wait for a task that has no worker. */
    public function partDestroyed(): void
    {
        if (!$this->isInFork()) {
            $this->submissions->ignoresFailures = true;
            $this->kill(true, ExecutorClosedException::destroyed());
        }
    }

    /**
     * @param array<int, WorkerHandle> $workers
     * @param bool $areWorkersCurrent whether the workers certainly have the user and groups of this process
     *
     * @return bool whether a worker has room for another batch, but the pool has no waiting task for this worker
     */
    private function assign(array $workers, bool $areWorkersCurrent = false): bool
    {
        for ($depth = 1; $depth <= self::MAX_BATCHES_PER_WORKER; ++$depth) {
            foreach ($workers as $worker) {
                if (\count($worker->batches) >= $depth || ($depth > 1 && !$this->timeouts->mayQueue($worker))) {
                    continue;
                }
                $maxTasks = $worker->tasksLeft($this->options);
                if ($maxTasks === 0) {
                    if ($worker->isIdle()) {
                        $worker->stop();
                    }
                    continue;
                }
                $batch = ($this->outcomes->openStreamCount > 0 ? $this->deadlock->taskFor($worker) : null)
                    ?? $this->backlog->shift($maxTasks)
                    ?? $this->activity->next($maxTasks, $this->workers->size, $depth > 1);
                if ($batch === null) {
                    return true;
                }
                if (!$areWorkersCurrent && $this->workers->group()->hasFormerPrivileges()) {
                    $this->backlog->add($batch);
                    $this->replacement->replaceForCredentials();

                    return false;
                }
                $areWorkersCurrent = true;
                if ($worker->batches === []) {
                    $this->timeouts->startClock($worker, $batch);
                }
                $worker->send($batch);
            }
        }

        return false;
    }

    public function receive(WorkerHandle $worker, int $type, int $id, string $bytes, int $at, int $length): void
    {
        if ($type === WorkerProtocol::RESULTS) {
            $batch = $worker->firstBatch();
            $done = $this->outcomes->receive($worker, $bytes, $at, $length);
            if ($done === null) {
                $worker->disconnect('The worker sent results of tasks that it does not have');
            } elseif ($done && $batch !== null && $worker->firstBatch() === $batch) {
                $this->batchDone($worker, $batch);
            } elseif ($worker->sharedFlags === null && $batch !== null) {
                $this->unwanted->endIfCancelled($worker, $batch);
            }
        } elseif ($type === WorkerProtocol::ITEMS) {
            $openStreamCount = $this->outcomes->openStreamCount;
            $this->outcomes->receiveItem($worker, substr($bytes, $at, $length));
            if ($this->outcomes->openStreamCount > $openStreamCount) {
                $this->deadlock->check();
            }
        } elseif ($type === WorkerProtocol::REPORT && $this->options->onReport !== null) {
            $report = substr($bytes, $at, $length);
            ReportDelivery::deliver(static fn(): mixed => PortableOutcome::report($report), $this->options->onReport);
        }
    }

    private function batchDone(WorkerHandle $worker, Batch $batch): void
    {
        array_shift($worker->batches);
        $batch->source->sizing()->learn($batch->receivedCount, $batch->elapsed, $batch->longest);
        if ($batch->receivedCount < $batch->limit) {
            // The worker skipped the last tasks, because of the limit in SharedFlags or because of memory growth.
            $this->backlog->requeue($batch, $batch->receivedCount, $batch->limit);
        }
        if ($batch->source instanceof MapRun) {
            $this->unwanted->finishIfAbandoned($batch->source);
        }
        $next = $worker->firstBatch();
        $next === null ? $this->workers->becameIdle($worker) : $this->timeouts->startClock($worker, $next);
        $this->fill();
        $this->activity->stopIfSettled();
    }

    public function workerEnded(WorkerHandle $worker): void
    {
        $batches = $worker->batches;
        $this->outcomes->workerEnded($worker);
        foreach ($batches as $batch) {
            if ($batch->source instanceof MapRun) {
                $this->unwanted->finishIfAbandoned($batch->source);
            }
        }
        $this->activity->stopIfSettled();
    }

    public function startFailed(WorkerStartException $reason): void
    {
        $this->activity->abort($reason);
        $this->activity->stopIfSettled();
    }

    /** @param array<int, WorkerHandle> $workers */
    private function failAll(array $workers, ExecutorClosedException $reason): void
    {
        foreach ($workers as $worker) {
            $this->outcomes->failTasks($worker, $reason);
        }
        $this->activity->abort($reason);
    }

    /** Fails all tasks in a fork, because no outcome arrives there. In the parent process, the tasks continue. */
    public function failInFork(): void
    {
        $reason = ExecutorClosedException::forked();
        $this->submissions->ignoresFailures = true;
        $this->failAll($this->workers->all, $reason);
        $this->activity->end($reason);
    }

    /** Returns whether this is a fork of the pool's process. A fork must not use the shared sockets and memory. */
    public function isInFork(): bool
    {
        return $this->ownerPid !== getmypid();
    }

    public function streamReleased(WorkerHandle $worker, Batch $batch, int $index): void
    {
        if (!$this->isInFork()) {
            $this->unwanted->endReleased($worker, $batch, $index);
        }
    }

    public function onSettled(): void
    {
        $this->activity->onSettled();
    }
}
