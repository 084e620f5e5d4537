<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\DeferredFuture;
use Revolt\EventLoop;
use Spindle\Worker\PoolClosedException;
use Spindle\Worker\TaskException;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\WorkerCrashedException;
use Spindle\Worker\WorkerPoolOptions;
use Spindle\Worker\WorkerStartException;

use function Amp\weakClosure;

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

    /** @var list<Batch> taken back from workers, or to be tried again: they go first */
    private array $returned = [];

    /** @var array<string, Batch> that wait for another attempt, by the timer */
    private array $pauses = [];

    /** It takes no more tasks; its workers are told to stop; they have. */
    private bool $closed = false;
    private bool $stopping = false;
    private bool $over = false;

    /** @var DeferredFuture<null>|null completed when nothing is open any more */
    private ?DeferredFuture $drained = null;

    /** Tasks whose items are under way. */
    private int $streams = 0;

    /** The loop goes on while this timer is referenced. */
    private readonly string $alive;
    private ?string $looking = null;

    /** @param \Closure(ContextEvents): Context $context */
    public function __construct(
        int $size,
        private readonly TaskRetryPolicy $retry,
        private readonly WorkerPoolOptions $options,
        private readonly Settings $settings,
        \Closure $context,
    ) {
        $this->workers = new Workers($size, $options, $settings, $context, $this->fill(...), $this->heard(...), $this->gone(...), $this->cannotStart(...));
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
        if ($submission->isSettled()) {
            return;
        }
        $submission->cancelled = $reason;
        if ($this->submissions->withdraw($submission, $reason) || $this->withdrawReturned($submission)) {
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
        $this->returned = array_values(array_filter($this->returned, static fn(Batch $batch): bool => $batch->source !== $run));
        foreach ($this->pauses as $timer => $batch) {
            if ($batch->source === $run) {
                EventLoop::cancel($timer);
                unset($this->pauses[$timer]);
            }
        }
        foreach ($this->workers->all() as $worker) {
            if (!$this->has($worker, $run)) {
                continue;
            }
            $this->takeBack($worker);
            if ($patience === 0.0) {
                $this->endIfRunning($worker, $run);
            } else {
                $worker->timers["left {$run->id()}"] = EventLoop::unreference(EventLoop::delay($patience, weakClosure(function () use ($worker, $run): void {
                    unset($worker->timers["left {$run->id()}"]);
                    $this->endIfRunning($worker, $run);
                })));
            }
        }
        $this->endedIfGone($run);
        $this->fill();
    }

    public function forget(MapRun $run): void
    {
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
            $demand = \count($this->returned);
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
                    $worker->streaming === $index ? $this->endOfStream($worker)?->failed($reason) : $batch->source->failed($batch, $index, $reason);
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
        if ($this->submissions->open() === 0 && $this->streams === 0) {
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
        if ($this->returned !== []) {
            $batch = array_shift($this->returned);
            if (\count($batch->tasks) > $most) {
                array_unshift($this->returned, $batch->slice($most, \count($batch->tasks)));
                $batch = $batch->slice(0, $most);
            }

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
        $worker->timers['timeout'] = EventLoop::unreference(EventLoop::delay(max(0.001, min($seconds, 1e9)), weakClosure(function () use ($worker): void {
            $worker->timed = false;
            $this->lookAtTime($worker, (float) $this->options->timeout);
        })));
    }

    private function lookAtTime(WorkerHandle $worker, float $timeout): void
    {
        $batch = $worker->running()[0] ?? $worker->batches[0] ?? null;
        if ($batch === null || $worker->ending !== null) {
            return;
        }
        $since = max($batch->since, $worker->batches[0]->since);
        if ($worker->mark !== null && $worker->mark->read()[0] === $batch->id) {
            $since = max($since, $worker->mark->startedAt());
        }
        $left = $timeout - (hrtime(true) - $since) / 1e9;
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
            $first = $worker->batches[0] ?? null;
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
        if ($waiting && $idle && $this->returned === [] && $this->looking === null) {
            $this->looking = EventLoop::unreference(EventLoop::delay(self::OVERDUE / 1e9, weakClosure(function (): void {
                $this->looking = null;
                $this->fill();
            })));
        }

        return $this->returned !== [];
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
                $this->giveBack($rest);
            }
        }
    }

    /** What was not started goes to another worker, unless nobody wants it any more. */
    private function giveBack(Batch $batch): void
    {
        if ($batch->source->isLeft()) {
            return;
        }
        foreach ($batch->tasks as $index => $task) {
            if ($task instanceof Submission && $task->cancelled !== null) {
                $batch->source->failed($batch, $index, $task->cancelled);
                $this->giveBack($batch->slice(0, $index));
                $this->giveBack($batch->slice($index + 1, \count($batch->tasks)));

                return;
            }
        }
        if ($batch->tasks !== []) {
            $this->returned[] = $batch;
        }
    }

    private function heard(WorkerHandle $worker, int $type, int $id, string $bytes, int $at, int $length): void
    {
        if ($type === Protocol::RESULTS) {
            $this->results($worker, $bytes, $at, $length);
        } elseif ($type === Protocol::ITEMS) {
            $this->item($worker, substr($bytes, $at, $length));
        } elseif ($type === Protocol::REPORT && $this->options->onReport !== null) {
            ($this->options->onReport)(unserialize(substr($bytes, $at, $length)));
        }
    }

    private function results(WorkerHandle $worker, string $bytes, int $at, int $length): void
    {
        $batch = $worker->batches[0] ?? null;
        /** @var array{from: int, count: int, flags: int, elapsed: int, longest: int, memory: int, peak: int} $head */
        $head = unpack('Vfrom/Vcount/Cflags/Pelapsed/Plongest/Pmemory/Ppeak', $bytes, $at);
        [$from, $count, $flags] = [$head['from'], $head['count'], $head['flags']];
        if ($batch === null || $from !== $batch->arrived || $from + $count > \count($batch->tasks)) {
            $this->workers->distrust($worker);

            return;
        }
        $worker->memory = $head['memory'];
        $worker->memoryPeak = max($worker->memoryPeak, $head['peak']);
        $batch->elapsed += $head['elapsed'];
        $batch->longest = max($batch->longest, $head['longest']);
        $done = ($flags & Protocol::DONE) !== 0;
        if ($count > 0) {
            $batch->arrived = $from + $count;
            $worker->tasks += $count;
            $results = substr($bytes, $at + 41, $length - 41);
            $packed = ($flags & Protocol::PACKED) !== 0;
            if (($flags & Protocol::FAILURES) === 0 && $worker->streaming < 0 && $worker->ending === null) {
                $batch->source->succeeded($batch, $from, $count, $packed, $results);
            } else {
                $this->eachResult($worker, $batch, $from, $packed ? $results : Packing::ofList($results));
            }
        }
        if ($done) {
            $this->done($worker, $batch);
        }
    }

    private function eachResult(WorkerHandle $worker, Batch $batch, int $from, string $results): void
    {
        [$kinds, $values] = Packing::split($results);
        foreach ($values as $i => $value) {
            $index = $from + $i;
            $kind = \ord($kinds[$i]);
            $failure = $worker->ending !== null && $worker->condemned === [$batch, $index]
                ? ($worker->ending)($batch, $index) // it has ended by itself, but too late
                : null;
            $failure ??= $kind === Protocol::THROWN || $kind === Protocol::UNSERIALIZABLE
                ? Outcome::failure($kind, $value, $batch->attempt, $batch->key($index))
                : null;
            if ($worker->streaming === $index) {
                $stream = $this->endOfStream($worker);
                $failure === null ? $stream?->ended(Outcome::value($kind, $value, $batch->attempt, null)) : $stream?->failed($failure);
            } elseif ($failure !== null) {
                $this->failed($batch, $index, $failure, false);
            } else {
                $one = new Packing();
                $one->add($kind, $value);
                $batch->source->succeeded($batch, $index, 1, true, $one->head() . $one->bytes());
            }
        }
    }

    private function done(WorkerHandle $worker, Batch $batch): void
    {
        array_shift($worker->batches);
        $batch->source->pace()->learn($batch->arrived, $batch->elapsed, $batch->longest);
        if ($batch->arrived < $batch->limit) {
            // It saw the limit when the pool had already counted the task as started.
            $this->giveBack($batch->slice($batch->arrived, $batch->limit));
        }
        if ($batch->source instanceof MapRun) {
            $this->endedIfGone($batch->source);
        }
        $next = $worker->batches[0] ?? null;
        if ($next === null) {
            $this->workers->idle($worker);
        } else {
            $this->isFirst($worker, $next);
        }
        $this->fill();
        $this->checkDrained();
    }

    private function item(WorkerHandle $worker, string $payload): void
    {
        $batch = $worker->batches[0];
        /** @var array{1: int} $index */
        $index = unpack('V', $payload);
        if ($worker->streaming !== $index[1]) {
            $worker->streaming = $index[1];
            $tell = static function (int $type, string $payload) use ($worker, $batch): void {
                if (($worker->batches[0] ?? null) === $batch) {
                    $worker->link?->send(Protocol::frame($type, $batch->id, $payload));
                }
            };
            $stream = new Stream(
                static fn(int $items, int $size) => $tell(Protocol::WANTED, pack('VV', $items, $size)),
                static fn() => $tell(Protocol::UNWANTED, ''),
            );
            $worker->stream = \WeakReference::create($stream);
            ++$this->streams;
            $this->keepLoop();
            $batch->source->streams($batch, $index[1], $stream);
        } else {
            $worker->stream?->get()?->arrived(substr($payload, 4));
        }
    }

    private function endOfStream(WorkerHandle $worker): ?Stream
    {
        $stream = $worker->stream?->get();
        $worker->streaming = -1;
        $worker->stream = null;
        --$this->streams;
        $this->settled();

        return $stream;
    }

    /** A task has no result: it is tried again, or this is its outcome. */
    private function failed(Batch $batch, int $index, \Throwable $failure, bool $crashed): void
    {
        $task = $batch->tasks[$index];
        $again = $failure instanceof TaskException && !$batch->source->isLeft() && !($task instanceof Submission && $task->cancelled !== null)
            && $this->retry->wants($failure, $batch->attempt, $batch->crashes + ($crashed ? 1 : 0));
        if (!$again) {
            $batch->source->failed($batch, $index, $failure);

            return;
        }
        $batch = $batch->again($index, $crashed);
        $timer = EventLoop::delay($this->retry->delayAfter($batch->attempt - 1), weakClosure(function () use (&$timer): void {
            $this->returned[] = $this->pauses[$timer];
            unset($this->pauses[$timer]);
            $this->fill();
        }));
        $this->pauses[EventLoop::unreference($timer)] = $batch;
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
            $this->giveBack($rest);
        }
        $worker->batches = [];
        foreach ($batches as $batch) {
            for ($index = $batch->arrived; $index < $batch->limit; ++$index) {
                $this->lost($worker, $batch, $index, [$batch, $index] === $running);
            }
            if ($batch->source instanceof MapRun) {
                $this->endedIfGone($batch->source);
            }
        }
        $this->checkDrained();
    }

    /** A task had been started and its result has not come. */
    private function lost(WorkerHandle $worker, Batch $batch, int $index, bool $ran): void
    {
        $failure = $ran && $worker->ending !== null ? ($worker->ending)($batch, $index) : $this->crash($worker, $batch, $index);
        if ($worker->streaming === $index && $ran) {
            $this->endOfStream($worker)?->failed($failure);
        } else {
            $this->failed($batch, $index, $failure, $ran && $failure instanceof WorkerCrashedException);
        }
    }

    private function crash(WorkerHandle $worker, Batch $batch, int $index): WorkerCrashedException
    {
        [$exitCode, $signal, $peak] = $worker->exit ?? [null, null, 0];

        return WorkerCrashedException::died(
            $exitCode,
            $signal,
            $worker->lastWords === '' ? null : $worker->lastWords,
            $worker->lastWords === '',
            $worker->stderr,
            max($peak, $worker->memoryPeak),
            $batch->attempt,
            $batch->key($index),
        );
    }

    private function cannotStart(WorkerStartException $reason): void
    {
        $this->giveUp($reason);
        $this->checkDrained();
    }

    /** What no worker has fails. */
    private function giveUp(\Throwable $reason): void
    {
        foreach ([...$this->returned, ...$this->pauses] as $batch) {
            foreach ($batch->tasks as $index => $_) {
                $batch->source->failed($batch, $index, $reason);
            }
        }
        array_map(EventLoop::cancel(...), array_keys($this->pauses));
        $this->returned = $this->pauses = [];
        foreach ($this->sources as $source) {
            $source->abort($reason);
        }
    }

    /** @return bool whether it was among those that no worker has; it has its outcome then */
    private function withdrawReturned(Submission $submission): bool
    {
        foreach ([...$this->returned, ...$this->pauses] as $key => $batch) {
            $index = $batch->source === $this->submissions ? array_search($submission, $batch->keys, true) : false;
            if ($index === false) {
                continue;
            }
            if (\is_string($key)) {
                EventLoop::cancel($key);
                unset($this->pauses[$key]);
            } else {
                $count = \count($batch->tasks);
                array_splice($this->returned, $key, 1, array_filter([$batch->slice(0, $index), $batch->slice($index + 1, $count)], static fn(Batch $part): bool => $part->tasks !== []));
            }
            $batch->source->failed($batch, $index, $submission->cancelled ?? PoolClosedException::killed());

            return true;
        }

        return false;
    }

    private function has(WorkerHandle $worker, MapRun $run): bool
    {
        foreach ($worker->batches as $batch) {
            if ($batch->source === $run) {
                return true;
            }
        }

        return false;
    }

    private function endIfRunning(WorkerHandle $worker, MapRun $run): void
    {
        [$batch, $index] = $worker->running() ?? [null, 0];
        if ($batch?->source === $run && $worker->ending === null && $index >= $batch->arrived) {
            $this->workers->end($worker, static fn(): \Throwable => PoolClosedException::killed());
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
            $this->submissions->open() > 0 || \count($this->sources) > 1 || $this->streams > 0 || $this->drained !== null
                ? EventLoop::reference($this->alive)
                : EventLoop::unreference($this->alive);
        }
    }

    private function checkDrained(): void
    {
        if ($this->drained === null || $this->stopping || $this->submissions->open() > 0 || $this->streams > 0) {
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
