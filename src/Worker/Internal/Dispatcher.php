<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\DeferredFuture;
use Revolt\EventLoop;
use Spindle\Internal\Aside;
use Spindle\Internal\WeakTimer;
use Spindle\Worker\PoolClosedException;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\WorkerPoolOptions;
use Spindle\Worker\WorkerStartException;

/**
 * A pool's own logic: which worker gets which tasks, and what becomes of them. Every task that a source gives away ends in
 * exactly one outcome.
 */
final class Dispatcher
{
    /** Seconds that a task of a loop that was left may still take, before its worker is ended for it. */
    public const LEAVING = 0.02;

    /** A batch that takes longer than this, in nanoseconds, has a long task in it: those behind it are taken back. */
    private const OVERDUE = 3_000_000;

    /** Seconds until another look at a worker that is between two tasks, or sends the result of one. */
    private const BETWEEN = 0.1;

    /** Batches that a worker has at most. */
    private const DEPTH = 2;

    /** A payload from this size on, in bytes, is not copied behind its header. */
    private const LARGE = 1 << 16;

    /** @var array<int, self> those of pools that are no more, but for the tasks that they were given */
    private static array $released = [];

    private readonly Workers $workers;
    private readonly Submissions $submissions;

    /** @var array<int, Source> by number; the first one is asked first, and the last one was asked last */
    private array $sources;

    private readonly Backlog $backlog;
    private readonly Results $results;

    /** It takes no more tasks; its workers are told to stop; they have. */
    private bool $closed = false;
    private bool $stopping = false;
    private bool $over = false;
    private readonly int $owner;

    /** @var DeferredFuture<null>|null completed when nothing is open any more */
    private ?DeferredFuture $drained = null;

    /** The loop goes on while this timer is referenced. */
    private readonly string $alive;
    private ?string $looking = null;

    /** @param \Closure(ContextEvents): Context $context */
    public function __construct(
        int $size,
        TaskRetryPolicy $retry,
        private readonly WorkerPoolOptions $options,
        Settings $settings,
        \Closure $context,
    ) {
        $this->workers = new Workers($size, $options, $settings, $context, $this->fill(...), $this->heard(...), $this->gone(...), $this->cannotStart(...));
        $this->owner = (int) getmypid();
        $this->backlog = new Backlog($this->fill(...));
        $this->results = new Results($retry, $this->backlog, $this->settled(...));
        $this->submissions = new Submissions($this->settled(...));
        $this->sources = [0 => $this->submissions];
        $this->alive = EventLoop::unreference(EventLoop::repeat(86_400, static fn() => null));
    }

    public function size(): int
    {
        return $this->workers->size;
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
        if ($this->closed) {
            throw PoolClosedException::forNew();
        }
    }

    public function submit(Submission $submission): void
    {
        $this->submissions->add($submission);
        if ($this->submissions->open() === 1) {
            $this->keepLoop();
        }
        $this->fill();
    }

    /** The task is not wanted any more: it fails with this as soon as it can do nothing more. */
    public function cancel(Submission $submission, \Throwable $reason): void
    {
        if ($submission->isSettled() || $this->isElsewhere()) {
            return;
        }
        $submission->cancelled = $reason;
        if ($this->submissions->withdraw($submission, $reason) || $this->backlog->withdraw($submission, $reason)) {
            return;
        }
        foreach ($this->workers->all() as $worker) {
            foreach ($worker->batches as $batch) {
                $index = $batch->source === $this->submissions ? array_search($submission, $batch->keys, true) : false;
                if ($index === false) {
                    continue;
                }
                $this->takeBack($worker);
                if (!$submission->isSettled() && $worker->running() === [$batch, $index]) {
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
        $this->sources[$run->id()] = $run;
        $this->keepLoop();
    }

    /** Nobody wants the run's results any more: what waits is dropped, what runs has so many seconds. */
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
            $this->takeBack($worker);
            if ($patience === 0.0) {
                $this->endIfRunning($worker, $run);
            } else {
                $worker->timers["left {$run->id()}"] = WeakTimer::after($patience, $this, static function (self $dispatcher) use ($worker, $run): void {
                    unset($worker->timers["left {$run->id()}"]);
                    $dispatcher->endIfRunning($worker, $run);
                });
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
        unset($this->sources[$run->id()]);
        foreach ($this->workers->all() as $worker) {
            if (isset($worker->codes[$run->id()])) {
                unset($worker->codes[$run->id()]);
                $worker->link?->send(Protocol::frame(Protocol::FORGET, $run->id()));
            }
        }
        $this->settled();
    }

    /** Gives tasks to the workers that have room, and starts workers while there are more. */
    public function fill(): void
    {
        $workers = $this->workers->all();
        if ($this->hand($workers) && $this->relieve($workers)) {
            $this->hand($workers);
        }
        if ($this->workers->mayGrow()) {
            $demand = $this->backlog->count();
            foreach ($this->sources as $source) {
                $demand = min(\PHP_INT_MAX >> 1, $demand + min(\PHP_INT_MAX >> 2, $source->demand()));
            }
            $this->workers->startFor($demand);
        }
    }

    /**
     * Takes no more tasks, and returns when those that there are have their outcomes and the workers have stopped.
     */
    public function close(): void
    {
        $this->closed = true;
        foreach ($this->sources as $source) {
            $source->close();
        }
        if ($this->over) {
            return;
        }
        $future = ($this->drained ??= new DeferredFuture())->getFuture();
        $this->keepLoop();
        $this->checkDrained();
        $future->await();
    }

    /** Ends everything at once. */
    public function kill(): void
    {
        $this->closed = true;
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
        $this->finish();
    }

    /** Nobody can give it more tasks: it ends when those that it has have their outcomes. */
    public function release(): void
    {
        if ($this->closed) {
            return;
        }
        $isRead = array_filter($this->workers->all(), static fn(WorkerHandle $worker): bool => $worker->stream?->get() !== null) !== [];
        if ($this->submissions->open() === 0 && !$isRead) {
            $this->kill();

            return;
        }
        $this->closed = true;
        $this->drained = new DeferredFuture();
        $this->drained->getFuture()->ignore();
        self::$released[spl_object_id($this)] = $this;
    }

    /**
     * @param array<int, WorkerHandle> $workers
     *
     * @return bool whether one of them has room for more than there is
     */
    private function hand(array $workers): bool
    {
        for ($depth = 1; $depth <= self::DEPTH; ++$depth) {
            foreach ($workers as $worker) {
                if (\count($worker->batches) >= $depth) {
                    continue;
                }
                $most = $this->workers->allowance($worker);
                if ($most === 0) {
                    continue;
                }
                $batch = $this->next($most, $depth > 1);
                if ($batch === null) {
                    return true;
                }
                $this->send($worker, $batch);
            }
        }

        return false;
    }

    /** @param bool $quick only of sources whose tasks take little time */
    private function next(int $most, bool $quick): ?Batch
    {
        $batch = $this->backlog->shift($most);
        if ($batch !== null) {
            return $batch;
        }
        foreach ($this->sources as $id => $source) {
            if ($quick && !$source->pace()->isQuick()) {
                continue;
            }
            $batch = $source->take($most, $this->workers->size);
            if ($batch !== null) {
                if (\count($this->sources) > 1) {
                    unset($this->sources[$id]);
                    $this->sources[$id] = $source;
                }

                return $batch;
            }
        }

        return null;
    }

    private function send(WorkerHandle $worker, Batch $batch): void
    {
        $batch->id = ++$worker->lastBatch;
        $id = $batch->source->id();
        $code = '';
        if (!isset($worker->codes[$id]) && $batch->source->code() !== null) {
            $worker->codes[$id] = true;
            $code = Protocol::frame(Protocol::CODE, $id, (string) $batch->source->code());
        }
        $worker->batches[] = $batch;
        if (\count($worker->batches) === 1) {
            $this->isFirst($worker, $batch);
        }
        [$head, $body] = $batch->payload();
        $head = $code . pack('VCV', \strlen($head) + \strlen($body) + 5, Protocol::TASKS, $batch->id) . $head;
        if (\strlen($body) < self::LARGE) {
            $worker->link?->send($head . $body);
        } else {
            $worker->link?->send($head);
            $worker->link?->send($body);
        }
    }

    /** The worker works on this batch now, or is about to. */
    private function isFirst(WorkerHandle $worker, Batch $batch): void
    {
        $batch->since = hrtime(true);
        if ($this->options->timeout !== null && !$worker->timed) {
            $this->limitTime($worker, $this->options->timeout);
        }
    }

    private function limitTime(WorkerHandle $worker, float $seconds): void
    {
        $worker->timed = true;
        $worker->timers['timeout'] = WeakTimer::after(max(0.001, $seconds), $this, static function (self $dispatcher) use ($worker): void {
            $worker->timed = false;
            $dispatcher->lookAtTime($worker, (float) $dispatcher->options->timeout);
        });
    }

    private function lookAtTime(WorkerHandle $worker, float $timeout): void
    {
        $batch = $worker->running()[0] ?? $worker->first();
        if ($batch === null || $worker->ending !== null) {
            return;
        }
        $since = max($batch->since, $worker->batches[0]->since);
        $left = null;
        if ($worker->mark !== null && $worker->mark->read()[0] === $batch->id) {
            $startedAt = $worker->mark->startedAt();
            $since = max($since, $startedAt);
            $left = $startedAt === 0 ? min($timeout, self::BETWEEN) : null;
        }
        $left ??= $timeout - (hrtime(true) - $since) / 1e9;
        if ($left > 0) {
            $this->limitTime($worker, $left);

            return;
        }
        $this->takeBack($worker);
        $worker->condemned = $worker->running();
        $this->workers->end($worker, static fn(Batch $batch, int $index): \Throwable => TaskTimeoutException::after($timeout, $batch->attempt, $batch->key($index)));
        $this->fill();
    }

    /**
     * Where a long task holds up others, these are given to somebody else.
     *
     * @param array<int, WorkerHandle> $workers
     *
     * @return bool whether something was taken back
     */
    private function relieve(array $workers): bool
    {
        $now = hrtime(true);
        $waiting = $idle = false;
        foreach ($workers as $worker) {
            $first = $worker->first();
            if ($first === null) {
                $idle = $idle || $worker->isIdle();
            } elseif ($worker->mark !== null && $this->waitingAt($worker)) {
                if ($now - $first->since > self::OVERDUE) {
                    $this->takeBack($worker);
                } else {
                    $waiting = true;
                }
            }
        }
        if ($waiting && $idle && $this->backlog->count() === 0 && $this->looking === null) {
            $this->looking = WeakTimer::after(self::OVERDUE / 1e9, $this, static function (self $dispatcher): void {
                $dispatcher->looking = null;
                $dispatcher->fill();
            });
        }

        return $this->backlog->count() > 0;
    }

    /** Whether the worker has tasks that it has probably not started. */
    private function waitingAt(WorkerHandle $worker): bool
    {
        $first = $worker->batches[0];

        return $first->limit - $first->arrived > 1 || (isset($worker->batches[1]) && $worker->batches[1]->limit > 0);
    }

    /** Takes back what a worker has not started. */
    private function takeBack(WorkerHandle $worker): void
    {
        foreach ($worker->batches as $batch) {
            $started = $worker->revoke($batch);
            if ($started < $batch->limit) {
                $rest = $batch->slice($started, $batch->limit);
                $batch->limit = $started;
                $this->backlog->add($rest);
            }
        }
    }

    private function heard(WorkerHandle $worker, int $type, int $id, string $bytes, int $at, int $length): void
    {
        if ($type === Protocol::RESULTS) {
            $done = $this->results->take($worker, $bytes, $at, $length);
            if ($done === null) {
                $this->workers->distrust($worker);
            } elseif ($done) {
                $this->done($worker, $worker->batches[0]);
            }
        } elseif ($type === Protocol::ITEMS) {
            $this->results->takeItem($worker, substr($bytes, $at, $length));
        } elseif ($type === Protocol::REPORT && $this->options->onReport !== null) {
            $report = substr($bytes, $at, $length);
            $onReport = $this->options->onReport;
            Aside::call(static fn() => $onReport(unserialize($report)));
        }
    }

    private function done(WorkerHandle $worker, Batch $batch): void
    {
        array_shift($worker->batches);
        $batch->source->pace()->learn($batch->arrived, $batch->elapsed, $batch->longest);
        if ($batch->arrived < $batch->limit) {
            // It saw the limit when the pool had already counted the task as started.
            $this->backlog->add($batch->slice($batch->arrived, $batch->limit));
        }
        if ($batch->source instanceof MapRun) {
            $this->endedIfGone($batch->source);
        }
        $next = $worker->first();
        if ($next === null) {
            $this->workers->idle($worker);
        } else {
            $this->isFirst($worker, $next);
        }
        $this->fill();
        $this->checkDrained();
    }

    /** A worker is no more: what it had is given to others, but for what it had started. */
    private function gone(WorkerHandle $worker): void
    {
        $batches = $worker->batches;
        $running = null;
        foreach ($batches as $batch) {
            $started = min($batch->limit, $worker->started($batch));
            if ($started > $batch->arrived) {
                $running = [$batch, $started - 1];
            }
            $rest = $batch->slice($started, max($started, $batch->limit));
            $batch->limit = $started;
            $this->backlog->add($rest);
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
        $this->checkDrained();
    }

    private function cannotStart(WorkerStartException $reason): void
    {
        $this->giveUp($reason);
        $this->checkDrained();
    }

    /** What no worker has fails. */
    private function giveUp(\Throwable $reason): void
    {
        $this->backlog->fail($reason);
        foreach ($this->sources as $source) {
            $source->abort($reason);
        }
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

    /** In a fork of the pool's process, which shares its sockets and marks, and is not to touch them. */
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
        $this->keepLoop();
        $this->checkDrained();
    }

    /** The loop goes on while somebody may wait for something that comes from here. */
    private function keepLoop(): void
    {
        if (!$this->over) {
            $this->submissions->open() > 0 || \count($this->sources) > 1 || $this->results->streams() > 0 || $this->drained !== null
                ? EventLoop::reference($this->alive)
                : EventLoop::unreference($this->alive);
        }
    }

    private function checkDrained(): void
    {
        if ($this->drained === null || $this->stopping || $this->submissions->open() > 0 || $this->results->streams() > 0) {
            return;
        }
        foreach ($this->sources as $source) {
            if ($source instanceof MapRun && !$source->isSettled()) {
                return;
            }
        }
        $this->stopping = true;
        if (isset(self::$released[spl_object_id($this)])) {
            $this->workers->close(); // at once, for nobody may turn the loop from here on
            $this->finish();

            return;
        }
        $this->workers->stopAll(function (): void {
            $this->workers->close();
            $this->finish();
        });
    }

    private function finish(): void
    {
        if ($this->over) {
            return;
        }
        $this->over = true;
        EventLoop::cancel($this->alive);
        if ($this->looking !== null) {
            EventLoop::cancel($this->looking);
        }
        unset(self::$released[spl_object_id($this)]);
        $this->drained?->complete();
    }
}
