<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\Async\LoopTurn;
use Spindle\Internal\OneWayGenerator;
use Spindle\Internal\UnreadResults;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\MapOutcome;
use Spindle\Worker\TaskFailedException;

/**
 * Runs one call of map() or of a variant, such as mapUnordered(): reads the input in batches, and keeps results for the
 * caller's loop. The tasks whose values were read and whose results the caller has not read are called the window. The
 * number and the bytes of these tasks are limited, so that memory does not grow with the length of the input.
 *
 * While the arguments and results in the window have {@see OutcomeQueue::MAX_BYTES} or more, no input is read. When the
 * results alone reach this size, tasks that have not started are taken back from the workers. These tasks wait until
 * the results have half of this size or less.
 *
 * @phpstan-import-type Outcome from OutcomeQueue
 * @phpstan-import-type Chunk from OutcomeQueue
 */
final class MapRun implements TaskSource
{
    private static int $lastId = 0;

    /** The window has at most MIN_WINDOW_TASKS tasks, or BATCHES_AHEAD batches per worker if these are more tasks. */
    private const MIN_WINDOW_TASKS = 1024;
    private const BATCHES_AHEAD = 4;

    /** After this time without a turn of the event loop, map() runs one turn, so that workers get new tasks. */
    private const LOOP_INTERVAL_NANOSECONDS = 500_000;

    private readonly int $id;
    private readonly BatchSizing $sizing;

    private readonly MapInput $input;

    private readonly OutcomeQueue $queue;

    /** Whether results may exceed the limit, because the fiber that would read them waits in the pool's close(). */
    private bool $isUnlimited = false;

    /** @var \WeakReference<object>|null fiber that reads the results; null for {main} */
    private ?\WeakReference $reader = null;

    /** @var array<int, Batch> batches that wait until results are read, by number of their first task */
    private array $blocked = [];

    private int $settledCount = 0;

    private int $deliveredCount = 0;

    /** Bytes of the arguments of the tasks whose results the caller has read. */
    private float $deliveredBytes = 0.0;

    /** Whether no more results will be read: the caller's loop has ended or was cancelled, or abort() was called. */
    private bool $abandoned = false;

    /** Whether an abandoned map has ended: no worker has any of its tasks, or {@see abort()} was called. */
    private bool $finished = false;

    /** Exception to throw instead of further results. Only this class writes the property. */
    public ?\Throwable $abortReason = null;

    private readonly Condition $changed;

    /** Time at which the event loop last ran while the caller waited, in nanoseconds of hrtime(); 0 for never. */
    private int $lastLoopTurn = 0;

    /**
     * @param iterable<mixed, mixed> $input
     * @param bool $keepsFailures whether to yield a MapOutcome for each task, and to continue after failed tasks;
     *     if workers lack the code of the task, map() throws even then
     */
    public function __construct(
        private readonly TaskDispatcher $dispatcher,
        iterable $input,
        private readonly string $code,
        bool $inOrder,
        private readonly bool $keepsFailures,
    ) {
        $this->id = ++self::$lastId;
        $this->changed = new Condition();
        $this->sizing = new BatchSizing();
        $this->queue = new OutcomeQueue($inOrder);
        $this->input = new MapInput($dispatcher, $this, $this->sizing, $input);
    }

    /**
     * @param object $owner the pool, which must not be destroyed during the loop
     *
     * @return \Generator<mixed, mixed>
     */
    public function results(?Cancellation $cancellation, UnreadResults $unread, object $owner): \Generator
    {
        $unread->begin();
        $this->ensurePossible($cancellation);
        $subscription = $cancellation?->subscribe($this->fail(...));
        $this->dispatcher->open($this);
        try {
            $this->input->pullSoon();
            while (($chunk = $this->nextChunk()) !== null) {
                [$count, $keys, $outcome, , $attempt, $bytes] = $chunk;
                $chunk = null;
                $isTaskMissing = $outcome instanceof TaskFailedException && $outcome->isTaskMissing;
                if ($outcome instanceof \Generator) {
                    $outcome = $this->keepsFailures ? MapOutcome::of(static fn(): \Generator => $outcome) : $outcome;
                    yield from OneWayGenerator::yieldOnce($keys[0], $outcome);
                    yield from OneWayGenerator::release();
                } elseif ($this->keepsFailures && !$isTaskMissing) {
                    yield from $this->outcomes($outcome, $keys, $attempt, $cancellation);
                } elseif (\is_string($outcome)) {
                    foreach (ValuePacking::decodeList($outcome) as $i => $value) {
                        yield $keys[$i] => $value;
                        if ($cancellation !== null && $this->abandonIfCancelled($cancellation)) {
                            break;
                        }
                    }
                } elseif (\is_array($outcome)) {
                    [[$kinds, $values], $outcome] = [$outcome, null]; // release each large value as soon as possible
                    foreach ($values as $i => $value) {
                        yield $keys[$i] => TaskOutcome::value(\ord($kinds[$i]), $value, $attempt, $keys[$i]);
                        if ($cancellation !== null && $this->abandonIfCancelled($cancellation)) {
                            break;
                        }
                    }
                } else {
                    throw $outcome;
                }
                $this->deliveredCount += $count;
                $this->deliveredBytes += $bytes;
                $this->input->pullSoon();
            }
            $this->abandoned = $this->finished = true; // so that abandon() does not end generator tasks that still run
        } finally {
            $cancellation?->unsubscribe((string) $subscription);
            $this->abandon(UnwantedTasks::TIMEOUT);
            $this->dispatcher->forget($this);
            $this->input->release();
        }
    }

    private function ensurePossible(?Cancellation $cancellation): void
    {
        try {
            $cancellation?->throwIfRequested();
            FiberSwitch::ensurePossible();
            $this->dispatcher->replaceOutdatedWorkers();
            $this->dispatcher->mustBeOpen();
        } catch (\Throwable $refusal) {
            $this->input->refuse($refusal);
        }
    }

    public function sizing(): BatchSizing
    {
        return $this->sizing;
    }

    public function code(): string
    {
        return $this->code;
    }

    public function id(): int
    {
        return $this->id;
    }

    public function demand(): int
    {
        $blocked = $this->blocked === [] ? 0 : \count(array_filter($this->blocked, $this->mayRun(...)));

        return $blocked + $this->input->demand();
    }

    public function take(int $maxTasks, int $workers): ?Batch
    {
        foreach ($this->blocked as $first => $batch) {
            if ($this->mayRun($batch)) {
                unset($this->blocked[$first]);
                if (\count($batch->tasks) <= $maxTasks) {
                    return $batch;
                }
                $this->block($batch->slice($maxTasks, \count($batch->tasks)));

                return $batch->slice(0, $maxTasks);
            }
        }
        $batch = $this->input->take($maxTasks);
        if ($batch !== null && !$this->mayRun($batch)) {
            $this->block($batch);

            return null;
        }

        return $batch;
    }

    /** Returns whether the batch can start now: the queue is not full or not limited, or the batch has firstOpen(). */
    public function mayRun(Batch $batch): bool
    {
        return !$this->queue->isFull || $this->isUnlimited || $this->queue->needs($batch);
    }

    /** Keeps a batch that no worker has, until {@see mayRun()} returns true for the batch. */
    public function block(Batch $batch): void
    {
        if (!$this->abandoned) {
            $this->blocked[$batch->first] = $batch;
            ksort($this->blocked);
        }
    }

    public function firstOpen(): ?int
    {
        return $this->queue->firstOpen();
    }

    /** Returns whether more input may be read: the window is below both limits, and $queue is not full. */
    public function hasRoom(): bool
    {
        if ($this->queue->isFull) {
            return false;
        }
        $window = max(self::MIN_WINDOW_TASKS, self::BATCHES_AHEAD * $this->dispatcher->size() * $this->sizing->size);

        return $this->input->batchedCount - $this->deliveredCount < $window
            && $this->queue->bytes + $this->input->batchedBytes - $this->deliveredBytes < OutcomeQueue::MAX_BYTES;
    }

    /** Called when values were read from the input, or its end was reached. */
    public function onPulled(): void
    {
        if ($this->isSettled()) {
            $this->changed->notify();
        }
    }

    public function succeeded(Batch $batch, int $from, int $count, string|array $results, int $size): void
    {
        $this->settle($batch, $from, $count, $results, $size);
    }

    public function failed(Batch $batch, int $index, \Throwable $failure, int $size = 0): void
    {
        $this->settle($batch, $index, 1, $failure, $size);
    }

    public function streamStarted(Batch $batch, int $index, ItemStream $stream): void
    {
        $this->settle($batch, $index, 1, $stream->items(), 0);
    }

    public function isAbandoned(): bool
    {
        return $this->abandoned;
    }

    public function close(): void
    {
        $this->input->close(ExecutorClosedException::closedBeforeInputEnd());
        if ($this->reader?->get() === \Fiber::getCurrent()) {
            $this->isUnlimited = true;
            $this->dispatcher->fill();
        }
        $this->changed->notify();
    }

    public function abort(\Throwable $reason): void
    {
        $this->abortReason ??= $reason;
        $this->finished = $this->abandoned = true;
        $this->blocked = [];
        $this->input->drop();
        $this->changed->notify();
    }

    /** Returns whether the input and all tasks have ended; for an abandoned map, returns {@see $finished}. */
    public function isSettled(): bool
    {
        return $this->abandoned
            ? $this->finished
            : $this->input->isOver() && $this->settledCount === $this->input->batchedCount;
    }

    public function finish(): void
    {
        $this->finished = true;
        $this->changed->notify();
    }

    /**
     * @param string|array{string, list<string>}|\Throwable $outcome
     * @param list<mixed> $keys
     *
     * @return \Generator<mixed, MapOutcome<mixed>>
     */
    private function outcomes(
        string|array|\Throwable $outcome,
        array $keys,
        int $attempt,
        ?Cancellation $cancellation,
    ): \Generator {
        $values = match (true) {
            \is_string($outcome) => ValuePacking::decodeList($outcome),
            \is_array($outcome) => $outcome[1],
            default => [$outcome],
        };
        foreach ($values as $i => $value) {
            yield $keys[$i] => MapOutcome::of(static fn(): mixed => match (true) {
                \is_array($outcome) => TaskOutcome::value(\ord($outcome[0][$i]), $outcome[1][$i], $attempt, $keys[$i]),
                $value instanceof \Throwable => throw $value,
                default => $value,
            });
            if ($cancellation !== null && $this->abandonIfCancelled($cancellation)) {
                break;
            }
        }
    }

    /** Ends the loop over the results with this exception. Tasks may still run for `$timeout` seconds. */
    public function fail(\Throwable $reason, float $timeout = 0.0): void
    {
        $this->abortReason ??= $reason;
        $this->abandon($timeout);
    }

    /** Abandons the map and returns true if it was cancelled, even before the event loop has called {@see fail()}. */
    private function abandonIfCancelled(Cancellation $cancellation): bool
    {
        try {
            $cancellation->throwIfRequested();

            return false;
        } catch (CancelledException $exception) {
            $this->fail($exception);

            return true;
        }
    }

    private function abandon(float $timeout): void
    {
        if ($this->abandoned) {
            return;
        }
        $this->abandoned = true;
        $this->input->drop();
        $this->blocked = [];
        $this->queue->clear();
        $this->dispatcher->abandon($this, $timeout);
        $this->changed->notify();
    }

    /** @return Chunk|null the next results; null after the last ones */
    private function nextChunk(): ?array
    {
        if ($this->dispatcher->isInFork()) {
            throw ExecutorClosedException::forked();
        }
        $fiber = \Fiber::getCurrent();
        $this->reader = $fiber === null ? null : \WeakReference::create($fiber);
        if ($this->lastLoopTurn !== 0 && hrtime(true) - $this->lastLoopTurn > self::LOOP_INTERVAL_NANOSECONDS) {
            LoopTurn::await();
            $this->lastLoopTurn = hrtime(true);
        }
        $hasResumed = !$this->queue->isFull;
        while (true) {
            if ($this->abortReason !== null) {
                if ($this->finished) {
                    throw $this->abortReason;
                }
            } elseif ($this->queue->hasNext()) {
                $wasFull = $this->queue->isFull;
                $chunk = $this->queue->shift();
                if ($wasFull && !$this->queue->isFull) {
                    $this->dispatcher->fill();
                }

                return $chunk;
            } elseif ($this->isSettled()) {
                $failure = $this->input->failure();

                return $failure === null ? null : throw $failure;
            }
            if (!$hasResumed) {
                $hasResumed = true;
                $this->dispatcher->fill(); // the task with the next result may be in $blocked
                continue; // fill() may have aborted the map
            }
            $this->changed->wait();
            $this->lastLoopTurn = hrtime(true);
        }
    }

    /** @param Outcome $outcome */
    private function settle(
        Batch $batch,
        int $from,
        int $count,
        string|array|\Throwable|\Generator $outcome,
        int $size,
    ): void {
        $this->settledCount += $count;
        if ($this->abandoned) {
            return;
        }
        if ($this->queue->add($batch, $from, $count, $outcome, $size)) {
            $this->dispatcher->takeBackBlocked($this);
        }
        if ($this->changed->isAwaited() && $this->queue->hasNext()) {
            $this->changed->notify();
        }
    }
}
