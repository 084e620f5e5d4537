<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\Clock;
use Spindle\Worker\ResultBudget;
use Spindle\Worker\RetryLaterException;
use Spindle\Worker\TaskException;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\WorkerCrashedException;

/** Handles results, items and failures from workers. Retries failed tasks, and requeues tasks of ended workers. */
final class OutcomeHandler
{
    /** Size in bytes of the header that precedes the results in a RESULTS frame: see docs/architecture/tasks.md. */
    private const RESULTS_HEAD_BYTES = 41;

    public int $attemptCount = 0;

    public int $failedCount = 0;

    public int $crashedCount = 0;

    /** Number of generator tasks that have begun and have no outcome. Only this class changes this number. */
    public int $openStreamCount = 0;

    public function __construct(
        private readonly TaskRetryPolicy $retry,
        private readonly Backlog $backlog,
        private readonly PoolEvents $pool,
        private readonly ?ResultBudget $budget,
    ) {}

    /** @return bool|null whether the frame ends the worker's first batch; null if the frame has unexpected results */
    public function receive(WorkerHandle $worker, string $bytes, int $at, int $length): ?bool
    {
        $batch = $worker->firstBatch();
        /** @var array{from: int, count: int, flags: int, elapsed: int, longest: int, memory: int, peak: int} $head */
        $head = unpack('Vfrom/Vcount/Cflags/Pelapsed/Plongest/Pmemory/Ppeak', $bytes, $at);
        [$from, $count, $flags] = [$head['from'], $head['count'], $head['flags']];
        if ($batch === null || $from !== $batch->receivedCount || $from + $count > $batch->limit) {
            return null;
        }
        $worker->memory = $head['memory'];
        $worker->memoryPeak = max($worker->memoryPeak, $head['peak']);
        if ($worker->sharedFlags === null) {
            $batch->firstSince = hrtime(true); // the worker reports no starts, so assume that the next task starts now
        }
        $batch->elapsed += $head['elapsed'];
        $batch->longest = max($batch->longest, $head['longest']);
        if ($count > 0) {
            $batch->receivedCount = $from + $count;
            $worker->outcomeCount += $count;
            $this->attemptCount += $count;
            // Packed values are split directly out of the frame, because another copy of large values would take time.
            $results = ($flags & WorkerProtocol::PACKED) !== 0
                ? ValuePacking::decode($bytes, $at + self::RESULTS_HEAD_BYTES)
                : substr($bytes, $at + self::RESULTS_HEAD_BYTES, $length - self::RESULTS_HEAD_BYTES);
            if (
                ($flags & WorkerProtocol::FAILURES) === 0
                && $worker->streamIndex < 0
                && $worker->createKillFailure === null
            ) {
                $batch->source->succeeded($batch, $from, $count, $results, $length);
            } else {
                $this->receiveEach(
                    $worker,
                    $batch,
                    $from,
                    \is_array($results) ? $results : ValuePacking::decode(ValuePacking::ofList($results)),
                );
            }
        }

        return ($flags & WorkerProtocol::DONE) !== 0;
    }

    /** Handles an ITEMS frame. The first frame of a task has no item, and only reports that items will follow. */
    public function receiveItem(WorkerHandle $worker, string $payload): void
    {
        $batch = $worker->firstBatch();
        if ($batch === null) {
            return;
        }
        /** @var array{1: int} $index */
        $index = unpack('V', $payload);
        if ($worker->streamIndex !== $index[1]) {
            $worker->streamIndex = $index[1];
            $worker->streamBatch = $batch;
            $stream = new ItemStream(new WorkerItems($this->pool, $worker, $batch, $index[1]), $this->budget);
            $worker->stream = \WeakReference::create($stream);
            ++$this->openStreamCount;
            $this->pool->onSettled();
            $batch->source->streamStarted($batch, $index[1], $stream);
        } else {
            $worker->stream?->get()?->add(substr($payload, 4));
        }
    }

    /** Requeues tasks that the worker has not started. Started tasks without a result fail or are retried. */
    public function workerEnded(WorkerHandle $worker): void
    {
        $batches = $worker->batches;
        $running = null;
        $unread = $worker->diedWhileReading() ? $worker->firstBatch() : null;
        foreach ($batches as $batch) {
            if ($batch === $unread && $batch->limit > 1) {
                $this->requeueEach($batch);
                continue;
            }
            $started = $batch === $unread ? $batch->limit : min($batch->limit, $worker->startedCount($batch));
            if ($started > $batch->receivedCount) {
                $running = [$batch, $started - 1];
            }
            $limit = $batch->limit;
            $batch->limit = $started;
            $this->backlog->requeue($batch, $started, $limit);
        }
        $worker->batches = [];
        foreach ($batches as $batch) {
            for ($index = $batch->receivedCount; $index < $batch->limit; ++$index) {
                $this->attemptLost($worker, $batch, $index, [$batch, $index] === $running);
            }
        }
    }

    /** Fails the worker's tasks without a retry, after the pool was killed, or in a fork of the pool's process. */
    public function failTasks(WorkerHandle $worker, \Throwable $reason): void
    {
        foreach ($worker->batches as $batch) {
            for ($index = $batch->receivedCount; $index < $batch->limit; ++$index) {
                if ($worker->streamIndex === $index && $worker->streamBatch === $batch) {
                    $this->endStream($worker)?->fail(static fn(): \Throwable => $reason);
                } else {
                    $batch->source->failed($batch, $index, $reason);
                }
            }
        }
        $worker->batches = [];
    }

    /** Requeues each task in its own batch. Then a task that is too large for the memory of a worker fails alone. */
    private function requeueEach(Batch $batch): void
    {
        for ($index = 0; $index < $batch->limit; ++$index) {
            $this->backlog->requeue($batch, $index, $index + 1);
        }
        $batch->limit = 0;
    }

    /** @param bool $wasRunning whether the task was running when the worker ended; false if only its result was lost */
    private function attemptLost(WorkerHandle $worker, Batch $batch, int $index, bool $wasRunning): void
    {
        // Without shared memory, the worker may have begun this task after the pool decided to end another one.
        $isReason = \in_array($worker->endingTask, [null, [$batch, $index]], true);
        $failure = $wasRunning && $isReason && $worker->createKillFailure !== null
            ? ($worker->createKillFailure)($batch, $index)
            : $this->crashFailure($worker, $batch, $index, $wasRunning);
        ++$this->attemptCount;
        ++$this->failedCount;
        $isCrash = $failure instanceof WorkerCrashedException;
        $this->crashedCount += (int) $isCrash;
        if ($worker->streamIndex === $index && $worker->streamBatch === $batch) {
            $this->endStream($worker)?->fail(static fn(): \Throwable => $failure);
        } elseif (!$this->retryIfAllowed($batch, $index, $failure, $wasRunning && $isCrash)) {
            $batch->source->failed($batch, $index, $failure);
        }
    }

    /** @param array{string, list<string>} $results from {@see ValuePacking::decode()} */
    private function receiveEach(WorkerHandle $worker, Batch $batch, int $from, array $results): void
    {
        [$kinds, $values] = $results;
        foreach ($values as $i => $value) {
            $index = $from + $i;
            $kind = \ord($kinds[$i]);
            $failure = $worker->createKillFailure !== null && $worker->endingTask === [$batch, $index]
                ? ($worker->createKillFailure)($batch, $index) // the task returned after the pool had decided to end it
                : null;
            $isFailure = $failure !== null || $kind >= WorkerProtocol::THROWN;
            $createFailure = static fn(bool $withOriginal): \Throwable => $failure
                ?? TaskOutcome::failure($kind, $value, $batch->attempt, $batch->key($index), $withOriginal);
            $this->failedCount += (int) $isFailure;
            if ($worker->streamIndex === $index) {
                $stream = $this->endStream($worker);
                $isFailure
                    ? $stream?->fail(static fn(): \Throwable => $createFailure(true))
                    : $stream?->finish(static fn(): mixed => TaskOutcome::value($kind, $value, $batch->attempt, null));
            } elseif ($isFailure) {
                $this->handleThrown($batch, $index, $createFailure, \strlen($value));
            } else {
                $batch->source->succeeded($batch, $index, 1, [\chr($kind), [$value]], \strlen($value));
            }
        }
    }

    /**
     * Handles a task that threw, ended too late, or returned a value that can't be serialized. If the task gets no
     * further attempt, the failure becomes its outcome, and the original exception is unserialized. Unserializing may
     * run code of the exception's class, and this code may use the pool or suspend its fiber. So a later callback of
     * the event loop unserializes the exception, after the pool has marked the worker as free.
     *
     * @param \Closure(bool): \Throwable $createFailure its argument says whether to add the original exception
     */
    private function handleThrown(Batch $batch, int $index, \Closure $createFailure, int $size): void
    {
        $hasRetries = $this->retry->retries > 0;
        if (!$hasRetries || !$this->retryIfAllowed($batch, $index, $createFailure(false), false)) {
            EventLoop::queue(static fn() => $batch->source->failed($batch, $index, $createFailure(true), $size));
        }
    }

    private function endStream(WorkerHandle $worker): ?ItemStream
    {
        $stream = $worker->stream?->get();
        $submission = $worker->streamBatch?->tasks[$worker->streamIndex];
        if ($submission instanceof Submission) {
            $submission->streamEnded();
        }
        $worker->streamIndex = -1;
        $worker->stream = $worker->streamBatch = null;
        --$this->openStreamCount;
        $this->pool->onSettled();

        return $stream;
    }

    /** @return bool whether the task gets another attempt */
    private function retryIfAllowed(Batch $batch, int $index, \Throwable $failure, bool $crashed): bool
    {
        $task = $batch->tasks[$index];
        $isWanted = !$batch->source->isAbandoned() && !($task instanceof Submission && $task->cancelled !== null);
        if (!$failure instanceof TaskException || !$isWanted || $batch->isPinned) {
            return false;
        }
        $minDelay = $failure instanceof TaskFailedException ? RetryLaterException::delayOf($failure->thrown) : null;
        if ($minDelay !== null && $this->mayPostpone($batch)) {
            --$this->attemptCount;
            --$this->failedCount;
            $this->backlog->addDelayed($batch->postpone($index), $minDelay);

            return true;
        }
        $isRetried = $this->retry->shouldRetry($failure, $batch->attempt, $batch->crashes + ($crashed ? 1 : 0));
        if ($isRetried) {
            $delay = max($minDelay ?? 0.0, $this->retry->delayAfter($batch->attempt));
            $this->backlog->addDelayed($batch->retry($index, $crashed), $delay);
        }

        return $isRetried;
    }

    private function mayPostpone(Batch $batch): bool
    {
        $since = $batch->postponedSince;

        return $this->retry->retries > 0
            && ($since === null || Clock::now() - $since < RetryLaterException::MAX_TOTAL_SECONDS);
    }

    private function crashFailure(
        WorkerHandle $worker,
        Batch $batch,
        int $index,
        bool $wasRunning,
    ): WorkerCrashedException {
        [$exitCode, $signal, $peak] = $worker->exit ?? [null, null, 0];
        $crashes = $batch->crashes + ($wasRunning ? 1 : 0);
        $bytes = $batch->bytesOf($index);

        return WorkerCrashedException::died(
            $exitCode,
            $signal,
            $worker->exitReport === '' ? null : $worker->exitReport,
            $worker->exitReport === '',
            $worker->lastErrors(),
            max($peak, $worker->memoryPeak),
            $batch->attempt,
            $batch->key($index),
            $this->retry->isCrashLimitReached($batch->attempt, $crashes),
            $wasRunning && $worker->lackedMemoryForData($bytes) ? $bytes : null,
            $worker->keptMemory($bytes),
            !$wasRunning,
            $worker->createKillFailure !== null,
        );
    }
}
