<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\WorkerStartException;

/** State of a worker in the pool. */
final class WorkerHandle
{
    public const MAX_STDERR_BYTES = 8192;

    public ?WorkerLink $link = null;

    /** Process id, from the greeting; 0 before. */
    public int $pid = 0;
    public ?SharedFlags $sharedFlags = null;

    /** Whether the worker may be given tasks. */
    public bool $ready = false;

    /** Whether the worker stops when it has nothing to do; and whether the order to stop was sent. */
    public bool $retiring = false;
    public bool $stopping = false;

    /** @var (\Closure(Batch, int): \Throwable)|null creates the task's failure once the worker is being ended */
    public ?\Closure $ending = null;

    /** @var array{Batch, int}|null task for which the worker is being ended */
    public ?array $endingTask = null;

    /** @var list<Batch> batches that were sent and are not done, in the order in which they run */
    public array $batches = [];
    public int $lastBatchId = 0;

    /** @var array<int, true> sources whose code the worker has */
    public array $codes = [];

    /**
     * Number of tasks with results; when the worker became ready, in nanoseconds of {@see hrtime()}; and its memory in
     * bytes: at that time, after the last results, and at most.
     */
    public int $taskCount = 0;
    public int $readyAt = 0;
    public int $initialMemory = 0;
    public int $memory = 0;
    public int $memoryPeak = 0;

    public string $stderr = '';

    public ?WorkerStartException $startFailure = null;

    /** Last message of the worker: the text of a fatal error, or '' after exit(). */
    public ?string $exitReport = null;

    /** @var array{?int, ?int, int}|null exit code, signal and memory peak */
    public ?array $exit = null;

    /** @var \WeakReference<ItemStream>|null items of a generator task; then the task's index, or -1, and its batch */
    public ?\WeakReference $stream = null;
    public int $streamIndex = -1;
    public ?Batch $streamBatch = null;

    /** When the worker became idle, in nanoseconds of {@see hrtime()}. */
    public int $idleSince = 0;

    /** @var array<string> timers of this worker */
    public array $timers = [];

    /** Whether a timer for the time limit is set. */
    public bool $isTimeChecked = false;

    public function __construct(
        public readonly int $id,
        public readonly int $sharedMemoryKey,
        public readonly WorkerGroup $group,
    ) {}

    /** @param string $payload of READY */
    public function setReady(string $payload): void
    {
        /** @var array{memory: int} $fields */
        $fields = unpack('Pmemory', $payload);
        $this->ready = true;
        $this->readyAt = hrtime(true);
        $this->initialMemory = $this->memory = $fields['memory'];
    }

    /** @param string $payload of EXIT_REPORT */
    public function recordExitReport(string $payload): void
    {
        /** @var array{peak: int, fatal: int} $fields */
        $fields = unpack('Ppeak/Cfatal', $payload);
        $this->memoryPeak = max($this->memoryPeak, $fields['peak']);
        $this->exitReport = substr($payload, 9);
    }

    /** Returns the batch that the worker is running. */
    public function firstBatch(): ?Batch
    {
        return $this->batches[0] ?? null;
    }

    /** Returns whether the worker gets no more tasks. */
    public function isEnding(): bool
    {
        return $this->retiring || $this->ending !== null;
    }

    public function isIdle(): bool
    {
        return $this->ready && $this->batches === [] && !$this->isEnding();
    }

    public function appendStderr(string $error): void
    {
        $this->stderr = substr($this->stderr . $error, -self::MAX_STDERR_BYTES);
    }

    /** Returns the number of tasks of a batch that the worker has started, as far as known. */
    public function startedCount(Batch $batch): int
    {
        $count = \count($batch->tasks);
        if ($this->sharedFlags !== null) {
            return max($batch->receivedCount, $this->sharedFlags->startedCount($batch->id, $count));
        }

        // The worker sends each result before it starts the next task.
        return $batch === ($this->batches[0] ?? null) ? min($count, $batch->receivedCount + 1) : 0;
    }

    /** @return array{Batch, int}|null the last task that the worker started, among its present batches */
    public function runningTask(): ?array
    {
        foreach (array_reverse($this->batches) as $batch) {
            $started = $this->startedCount($batch);
            if ($started > 0) {
                return [$batch, min($started, \count($batch->tasks)) - 1];
            }
        }

        return null;
    }

    /** Takes back the tasks of a batch that have not started. Returns the number of tasks that remain. */
    public function takeBack(Batch $batch): int
    {
        $started = $this->sharedFlags === null
            ? $batch->limit
            : max($batch->receivedCount, $this->sharedFlags->takeBack($batch->id, $batch->limit));

        return min($batch->limit, $started);
    }

    /** Returns whether the worker has begun any task, as far as known. */
    public function hasBegun(): bool
    {
        return $this->taskCount > 0 || $this->runningTask() !== null || $this->diedWhileReading();
    }

    /** Returns whether the worker ran out of memory while it read the arguments of its first batch. */
    public function diedWhileReading(): bool
    {
        $first = $this->firstBatch();

        return $first !== null && $this->ending === null && $this->startedCount($first) === 0
            && preg_match('/^(?:Allowed memory size of|Out of memory)/', $this->exitReport ?? '') === 1;
    }

    /** Returns whether a signal ended the worker or its host, and no other reason is known. */
    public function wasKilled(): bool
    {
        return $this->startFailure === null && isset($this->exit[1]);
    }

    public function exitDescription(): string
    {
        [$exitCode, $signal] = $this->exit ?? [null, null];

        return $signal === null ? 'exit code ' . ($exitCode ?? 'unknown') : "signal {$signal}";
    }

    /** Returns the reason why the worker began no task. */
    public function failure(): WorkerStartException
    {
        $reason = $this->exitReport === '' ? 'exit(' . ($this->exit[0] ?? '') . ')' : $this->exitReport;

        return $this->startFailure ?? WorkerStartException::ended($reason ?? $this->exitDescription(), $this->stderr);
    }
}
