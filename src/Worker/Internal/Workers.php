<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\IsolatedCall;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\Warnings;
use Spindle\Internal\WeakTimer;
use Spindle\Worker\WorkerPoolOptions;
use Spindle\Worker\WorkerStartException;

/** Starts the workers of a pool, stops workers that are idle too long or must be replaced, and ends all workers. */
final class Workers implements WorkerEvents
{
    private readonly WorkerGroups $groups;
    public readonly StartBackoff $backoff;

    /** @var array<int, WorkerHandle> workers by id */
    public array $all = [];

    private int $endingCount = 0;
    private int $lastId = 0;
    private ?string $idleTimer = null;

    private ?OwnLoop $loop = null;

    private ?string $stopTimer = null;
    private bool $closed = false;

    /** @var \Closure(): void|null parameter of {@see stopAll()} */
    private ?\Closure $onEmpty = null;

    /**
     * @param int $size maximum number of workers; after a change, call {@see shrink()}
     * @param \Closure(ContextEvents): Context $context
     */
    public function __construct(
        public int $size,
        private readonly WorkerPoolOptions $options,
        WorkerSettings $settings,
        \Closure $context,
        private readonly PoolEvents $pool,
    ) {
        $this->backoff = new StartBackoff($pool);
        $this->groups = new WorkerGroups($context, $settings, $options, $this);
    }

    public function inUseCount(): int
    {
        return \count(array_filter($this->all, static fn(WorkerHandle $worker): bool => $worker->batches !== []));
    }

    /** Returns whether any generator task is running whose generator the caller has not released. */
    public function hasReader(): bool
    {
        $isRead = static fn(WorkerHandle $worker): bool => $worker->stream?->get() !== null;

        return array_filter($this->all, $isRead) !== [];
    }

    public function mayGrow(): bool
    {
        return $this->surplus() < 0;
    }

    /** Returns the group that new workers join. All workers since the last {@see replaceAll()} are in this group. */
    public function group(): WorkerGroup
    {
        return $this->groups->current;
    }

    /**
     * Stops each ready worker after its current tasks, and ends workers that are not ready yet. Workers that start
     * later get the current user, groups and autoloaders of this process.
     *
     * @param string $what what has changed, for the log: 'credentials' or 'autoloaders'
     */
    public function replaceAll(string $what): void
    {
        $this->backoff->endPause();
        $this->log('The {what} of this process have changed, so the workers are replaced', ['what' => $what]);
        foreach ($this->groups->replace()->workers as $worker) {
            if ($worker->ready) {
                $worker->stop();
            } else {
                $worker->end(static fn(): \Throwable => WorkerStartException::otherCredentials());
            }
        }
    }

    /** Returns the number of workers to start for `$demand` batches, up to the pool's size; 0 if starts are paused. */
    public function missingFor(int $demand): int
    {
        if ($demand < 1 || $this->closed || $this->backoff->isPaused()) {
            return 0;
        }
        $room = $this->size;
        foreach ($this->all as $worker) {
            if (!$worker->isEnding) {
                --$room;
                $demand -= $worker->ready ? 0 : 1;
            }
        }

        return max(0, min($room, $demand));
    }

    /**
     * Starts a worker beyond the pool's size, to end a {@see StreamDeadlock}. Later, the first idle worker is stopped.
     *
     * @return int id of the extra worker; if it was not started, no worker has this id
     */
    public function startExtra(): int
    {
        if ($this->closed || $this->backoff->isPaused()) {
            return 0;
        }
        $this->start(1);

        return $this->lastId;
    }

    public function start(int $count): void
    {
        $this->loop ??= new OwnLoop();
        try {
            for (; $count > 0 && !$this->closed; --$count) { // the logger may have closed the pool
                $group = $this->group();
                $worker = $group->startup->start(++$this->lastId, $group, $this->size);
                $this->all[$worker->id] = $group->workers[$worker->id] = $worker;
                $this->log('Worker {id} was started', ['id' => $worker->id]);
            }
        } catch (WorkerStartException $failure) {
            $this->log('The start of a worker has failed ({reason})', ['reason' => $failure->getMessage()]);
            $this->backoff->countFailedStart($this->size, $failure);
            $this->hasOthers() ? $this->backoff->pause() : $this->pool->startFailed($failure);
        }
    }

    /** Called when a worker has nothing to do. Stops the worker if it must be replaced or the pool has too many. */
    public function becameIdle(WorkerHandle $worker): void
    {
        $worker->idleSince = hrtime(true);
        if ($worker->outcomeCount > 0) {
            $this->backoff->failureCount = 0;
        }
        if ($worker->tasksLeft($this->options) === 0 || $this->surplus() > 0) {
            $worker->stop();
        } elseif ($this->idleTimer === null && !$this->closed && is_finite($this->options->idleTimeout)) {
            $this->idleTimer = WeakTimer::after(
                $this->options->idleTimeout,
                $this,
                static fn(self $workers) => $workers->stopIdle(),
            );
        }
    }

    public function shrink(): void
    {
        foreach ($this->all as $worker) {
            if ($this->surplus() < 1) {
                return;
            }
            if ($worker->isIdle()) {
                $worker->stop();
            }
        }
    }

    /** @param \Closure(): void $onEmpty called when all workers have ended, or after WorkerHandle::STOP_TIMEOUT */
    public function stopAll(\Closure $onEmpty): void
    {
        $this->closed = true;
        $this->onEmpty = $onEmpty;
        foreach ($this->all as $worker) {
            $worker->stop();
        }
        if ($this->all === []) {
            $this->notifyEmpty();
        } else {
            $this->stopTimer = EventLoop::delay(WorkerHandle::STOP_TIMEOUT, $this->notifyEmpty(...));
        }
    }

    /** Ends all workers, and blocks until they have ended. `$readsOutput`: whether to pass on their last output. */
    public function close(bool $readsOutput = false): void
    {
        $this->closed = true;
        if ($this->loop?->isCurrent() === true) {
            $this->backoff->endPause();
        }
        $this->onEmpty = null;
        $this->loop?->cancel($this->idleTimer);
        $this->loop?->cancel($this->stopTimer);
        $workers = $this->all;
        $this->all = [];
        foreach ($workers as $worker) {
            $worker->link?->close(); // the worker ends when it is disconnected
        }
        $this->groups->close($readsOutput);
        // release() must follow the end of all workers, because a running worker could still create its shared memory.
        foreach ($workers as $worker) {
            $this->release($worker);
            $worker->sharedFlags = null;
        }
    }

    public function ended(WorkerHandle $worker): void
    {
        $worker->link?->readAll();
        $this->handleExit($worker);
    }

    public function printed(string $bytes, bool $isError): void
    {
        $onOutput = $this->options->onOutput;
        if ($onOutput !== null) {
            IsolatedCall::call(static fn() => $onOutput($bytes, $isError));
        } elseif (!$isError) {
            echo $bytes;
        } elseif (\defined('STDERR')) {
            Warnings::write(\STDERR, $bytes);
        } else {
            error_log($bytes);
        }
    }

    public function failedToStart(WorkerHandle $worker, WorkerStartException $why): void
    {
        $worker->startFailure = $why;
        $worker->end(static fn(): \Throwable => $why);
    }

    public function received(WorkerHandle $worker, int $type, int $id, string $bytes, int $at, int $length): void
    {
        match ($type) {
            WorkerProtocol::READY => $this->becameReady($worker, substr($bytes, $at, $length)),
            WorkerProtocol::NOT_READY => $worker->startFailure = TaskOutcome::startFailure(substr(
                $bytes,
                $at,
                $length,
            )),
            WorkerProtocol::OUTPUT => $this->printed(substr($bytes, $at, $length), false),
            WorkerProtocol::EXIT_REPORT => $worker->recordExitReport(substr($bytes, $at, $length)),
            default => $this->pool->receive($worker, $type, $id, $bytes, $at, $length),
        };
    }

    public function startedToEnd(): void
    {
        ++$this->endingCount;
    }

    public function partDestroyed(): void
    {
        $this->pool->partDestroyed();
    }

    private function becameReady(WorkerHandle $worker, string $payload): void
    {
        $worker->setReady($payload);
        $this->backoff->workerBecameReady();
        $this->log('Worker {id} is ready', ['id' => $worker->id]);
        $this->pool->fill(); // before becameIdle(), which stops a worker without tasks if the pool has too many
        if ($worker->batches === []) {
            $this->becameIdle($worker);
        }
    }

    private function handleExit(WorkerHandle $worker): void
    {
        unset($this->all[$worker->id], $worker->group->workers[$worker->id]);
        $this->release($worker);
        $beganNothing = !$worker->ready || ($worker->batches !== [] && !$worker->hasBegun());
        $this->pool->workerEnded($worker);
        $worker->sharedFlags = null; // frees the shared memory even if a generator still refers to the worker
        $this->groups->closeIfFormerAndEmpty($worker->group);
        $how = $worker->startFailure?->getMessage() ?? $worker->exitDescription();
        $this->log('Worker {id} has ended ({how})', ['id' => $worker->id, 'how' => $how]);
        if (!$beganNothing) {
            $this->backoff->failureCount = 0;
        } elseif ($worker->createKillFailure === null || $worker->startFailure !== null) {
            $this->endedWithoutTask($worker);
        }
        if (!$this->closed) {
            $this->pool->fill(); // another worker can be started
        } elseif ($this->all === []) {
            $this->notifyEmpty();
        }
    }

    /**
     * Handles a worker that ended before it began any task. Waiting tasks could wait for ever, so they fail if:
     * - the worker exited before it was ready, and the pool has no other worker
     * - the worker was ready or was killed, the pool has no other worker, and {@see StartBackoff::mayRetry()} is false
     * - more starts in a row than the pool's size have failed, and no worker is ready
     */
    private function endedWithoutTask(WorkerHandle $worker): void
    {
        $this->backoff->pause();
        $startsFail = !$worker->ready
            && !$worker->wasKilled()
            && $this->backoff->countFailedStart($this->size, $worker->failure());
        if ($startsFail ? $this->hasReady() : $this->hasOthers()) {
            return;
        }
        $this->backoff->endPause();
        if ($this->group() !== $worker->group || $worker->group->hasFormerCredentials()) {
            return; // the next worker may succeed, because it gets this process's new user, groups or autoloaders
        }
        $mayBeTransient = $worker->ready || $worker->wasKilled();
        if (!$mayBeTransient || !$this->backoff->mayRetry()) {
            $this->pool->startFailed($worker->failure());
        }
    }

    private function hasOthers(): bool
    {
        return \count($this->all) > $this->endingCount;
    }

    private function hasReady(): bool
    {
        $isReady = static fn(WorkerHandle $worker): bool => $worker->ready && !$worker->isEnding;

        return array_filter($this->all, $isReady) !== [];
    }

    private function release(WorkerHandle $worker): void
    {
        $worker->group->startup->forget($worker);
        $this->endingCount -= $worker->isEnding ? 1 : 0;
        foreach ($worker->timers as $timer) {
            $this->loop?->cancel($timer);
        }
        $worker->link?->close();
        $worker->link = null; // breaks a cycle, so that PHP frees both now: the link's callbacks refer to the worker
        if ($worker->sharedFlags === null) {
            SharedFlags::open($worker->sharedMemoryKey); // removes memory that the worker created but did not report
        }
    }

    /** Returns by how much the number of workers exceeds the pool's size; negative if there are fewer. */
    public function surplus(): int
    {
        return \count($this->all) - $this->endingCount - $this->size;
    }

    private function stopIdle(): void
    {
        $this->idleTimer = null;
        $next = \INF;
        foreach ($this->all as $worker) {
            if ($worker->isIdle()) {
                $left = $worker->idleLeft($this->options);
                $left <= 0.001 ? $worker->stop() : $next = min($next, $left);
            }
        }
        if (is_finite($next)) {
            $this->idleTimer = WeakTimer::after($next, $this, static fn(self $workers) => $workers->stopIdle());
        }
    }

    private function notifyEmpty(): void
    {
        $onEmpty = $this->onEmpty;
        $this->onEmpty = null;
        if ($onEmpty !== null) {
            $onEmpty();
        }
    }

    /** @param array<string, mixed> $context */
    private function log(string $message, array $context): void
    {
        $logger = $this->options->logger;
        if ($logger !== null) {
            IsolatedCall::call(static fn() => $logger->debug($message, $context));
        }
    }
}
