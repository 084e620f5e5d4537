<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\WeakTimer;
use Spindle\Worker\WorkerPoolOptions;
use Spindle\Worker\WorkerStartException;

/** State of a worker in the pool. Times are nanoseconds of {@see hrtime()}, which no change of the clock affects. */
final class WorkerHandle
{
    public const MAX_STDERR_BYTES = 8192;

    /** Seconds within which a worker must end after the STOP frame. After this time, the pool ends the worker. */
    public const STOP_TIMEOUT = 2.0;

    /** Seconds to wait for the exit status after the connection has ended. Then the pool ends the worker. */
    private const EXIT_STATUS_TIMEOUT = 1.0;

    /** A payload of at least this size, in bytes, is sent separately from its header, to avoid a copy. */
    private const MIN_SEPARATE_BYTES = 1 << 16;

    /** The worker is replaced after the batch with this id, because frames and shared memory store ids in 32 bits. */
    private const MAX_BATCH_ID = 0x7FFF_FFFF;

    /** Estimated maximum bytes of memory per byte of encoded data. Nested arrays of one element need 17. */
    private const MEMORY_PER_DATA_BYTE = 32;

    /** Share of the memory limit. If earlier tasks have kept this share or more, they caused the lack of memory. */
    private const MIN_KEPT_SHARE = 0.5;

    public ?WorkerLink $link = null;

    /** Process id from the greeting; 0 before the greeting. */
    public int $pid = 0;
    public ?SharedFlags $sharedFlags = null;

    public bool $ready = false;

    /** Whether the worker gets no more batches, because {@see stop()} or {@see end()} was called. */
    public bool $isEnding = false;

    public bool $stopping = false; // STOP was sent

    /** @var (\Closure(Batch, int): \Throwable)|null set by {@see end()}; creates the exception of the running task */
    public ?\Closure $createKillFailure = null;

    /** @var array{Batch, int}|null batch and index of the task that is the reason for ending the worker */
    public ?array $endingTask = null;

    /** @var list<Batch> batches that were sent and are not done, in the order in which they run */
    public array $batches = [];
    private int $lastBatchId = 0;

    /** @var array<int, true> ids of the map() calls whose code was sent to the worker */
    private array $sentCodes = [];

    public int $outcomeCount = 0;

    public int $readyAt = 0;

    public int $initialMemory = 0;

    public int $memory = 0;

    public int $memoryPeak = 0;

    /** Last bytes of the standard error since the worker started, or since it was last idle. */
    public string $stderr = '';

    /** Message if this worker ended because the process that starts workers died; otherwise null. */
    public ?string $loss = null;

    public ?WorkerStartException $startFailure = null;

    /** Text of the fatal error that ended the worker; '' if exit() ended it; null if the worker reported neither. */
    public ?string $exitReport = null;

    /** Whether the exit report says that the worker was receiving or decoding the data of tasks. */
    private bool $wasReceiving = false;

    /** Memory in bytes before the worker began to receive its last frame; from the exit report. */
    private int $memoryBefore = 0;

    /** @var array{?int, ?int, int}|null exit code, signal and memory peak, once the worker has ended */
    public ?array $exit = null;

    /** @var \WeakReference<ItemStream>|null items of the running generator task */
    public ?\WeakReference $stream = null;

    /** Index of the running generator task in $streamBatch. If none runs, the index is -1 and $streamBatch is null. */
    public int $streamIndex = -1;
    public ?Batch $streamBatch = null;

    public int $idleSince = 0;

    /** @var array<string> ids of the event loop's timers for this worker */
    public array $timers = [];

    public bool $hasTimeoutTimer = false;

    public function __construct(
        public readonly int $id,
        public readonly int $sharedMemoryKey,
        public readonly WorkerGroup $group,
    ) {}

    /** @param string $payload of the READY frame */
    public function setReady(string $payload): void
    {
        /** @var array{memory: int} $fields */
        $fields = unpack('Pmemory', $payload);
        $this->ready = true;
        $this->readyAt = hrtime(true);
        $this->initialMemory = $this->memory = $fields['memory'];
    }

    /** @param string $payload of the EXIT_REPORT frame */
    public function recordExitReport(string $payload): void
    {
        /** @var array{peak: int, before: int, receiving: int} $fields */
        $fields = unpack('Ppeak/Pbefore/Creceiving', $payload);
        $this->memoryPeak = max($this->memoryPeak, $fields['peak']);
        $this->exitReport = substr($payload, 17);
        $this->memoryBefore = $fields['before'];
        $this->wasReceiving = $fields['receiving'] !== 0;
    }

    public function firstBatch(): ?Batch
    {
        return $this->batches[0] ?? null;
    }

    public function isIdle(): bool
    {
        return $this->ready && $this->batches === [] && !$this->isEnding;
    }

    /** Returns how many more tasks the worker may get; 0 if it is not ready, or must end after its current tasks. */
    public function tasksLeft(WorkerPoolOptions $options): int
    {
        if (!$this->ready || $this->isEnding || $this->lastBatchId >= self::MAX_BATCH_ID) {
            return 0;
        }
        if ($options->maxLifetime !== null && (hrtime(true) - $this->readyAt) / 1e9 >= $options->maxLifetime) {
            return 0;
        }
        $maxGrowth = $options->maxMemoryGrowthBytes;
        if ($maxGrowth !== null && $this->memory - $this->initialMemory > $maxGrowth) {
            return 0;
        }
        if ($options->maxTasks === null) {
            return \PHP_INT_MAX;
        }
        $tasks = $this->outcomeCount;
        foreach ($this->batches as $batch) {
            $tasks += $batch->limit - $batch->receivedCount;
        }

        return max(0, $options->maxTasks - $tasks);
    }

    /** Sends a batch. If the worker does not have the code of the batch's tasks, sends the code first. */
    public function send(Batch $batch): void
    {
        if ($this->batches === [] && $this->outcomeCount > 0) {
            $this->stderr = ''; // no task is running, so the text comes from tasks that have ended
        }
        $batch->id = ++$this->lastBatchId;
        $id = $batch->source->id();
        $code = '';
        if (!isset($this->sentCodes[$id]) && $batch->source->code() !== null) {
            $this->sentCodes[$id] = true;
            $code = WorkerProtocol::frame(WorkerProtocol::CODE, $id, (string) $batch->source->code());
        }
        $this->batches[] = $batch;
        [$head, $body] = $batch->payload();
        $head = $code . pack('VCV', \strlen($head) + \strlen($body) + 5, WorkerProtocol::TASKS, $batch->id) . $head;
        if (\strlen($body) < self::MIN_SEPARATE_BYTES) {
            $this->link?->send($head . $body);
        } else {
            $this->link?->send($head);
            $this->link?->send($body);
        }
    }

    /** Makes the worker drop the code of a map() call that has no more tasks. */
    public function forgetCode(int $source): void
    {
        if (isset($this->sentCodes[$source])) {
            unset($this->sentCodes[$source]);
            $this->link?->send(WorkerProtocol::frame(WorkerProtocol::FORGET, $source));
        }
    }

    /** Returns how many more seconds the worker may be idle; INF for no limit. */
    public function idleLeft(WorkerPoolOptions $options): float
    {
        return $options->idleTimeout - (hrtime(true) - $this->idleSince) / 1e9;
    }

    /** Sends STOP if the worker has no tasks. Otherwise, {@see Workers::becameIdle()} calls stop() after the tasks. */
    public function stop(): void
    {
        $this->beginToEnd();
        if ($this->batches === [] && $this->link !== null && !$this->stopping) {
            $this->stopping = true;
            $this->link->send(WorkerProtocol::frame(WorkerProtocol::STOP, 0));
            $this->endIn(self::STOP_TIMEOUT); // because the worker's shutdown functions may take too long
        }
    }

    /** @param \Closure(Batch, int): \Throwable $reason creates the failure of the running task */
    public function end(\Closure $reason): void
    {
        if ($this->createKillFailure === null) {
            $this->beginToEnd();
            $this->createKillFailure = $reason;
            $this->group->context->end($this->id);
            // A thread that waits for a frame ends only when a frame arrives. So the pool sends a STOP frame.
            $this->link?->send(WorkerProtocol::frame(WorkerProtocol::STOP, 0));
        }
    }

    /** Closes the connection of a worker that violates the protocol. Ends the worker, and ignores further frames. */
    public function disconnect(string $protocolError): void
    {
        $this->link?->close();
        $this->disconnected($protocolError);
    }

    /** Called when the connection has ended. Waits for the exit status; after a protocol error, ends the worker. */
    public function disconnected(?string $protocolError): void
    {
        if ($protocolError !== null) {
            $this->appendStderr("{$protocolError}\n");
        }
        if ($this->exit === null) { // otherwise WorkerEvents::ended() is already handling the exit
            $this->group->context->onDisconnected($this->id);
            $this->endIn($protocolError === null ? self::EXIT_STATUS_TIMEOUT : 0.0);
        }
    }

    public function appendStderr(string $error): void
    {
        $this->stderr = substr($this->stderr . $error, -self::MAX_STDERR_BYTES);
    }

    /** Returns the last bytes of the standard error, and {@see self::$loss} as the last line if it is set. */
    public function lastErrors(): string
    {
        return $this->stderr . ($this->loss === null ? '' : ucfirst("{$this->loss}\n"));
    }

    /** Returns how many tasks of a batch the worker has started, as far as the pool knows. */
    public function startedCount(Batch $batch): int
    {
        $count = \count($batch->tasks);
        if ($this->sharedFlags !== null) {
            return max($batch->receivedCount, $this->sharedFlags->startedCount($batch->id, $count));
        }

        // Without shared memory, the worker sends each result before it starts the next task.
        return $batch === ($this->batches[0] ?? null) ? min($count, $batch->receivedCount + 1) : 0;
    }

    /** @return array{Batch, int}|null batch and index of the task in $batches that the worker started last */
    public function lastStartedTask(): ?array
    {
        foreach (array_reverse($this->batches) as $batch) {
            $started = $this->startedCount($batch);
            if ($started > 0) {
                return [$batch, min($started, \count($batch->tasks)) - 1];
            }
        }

        return null;
    }

    /** Takes back unstarted tasks of a batch if $sharedFlags is set. Returns how many tasks the worker keeps. */
    public function takeBack(Batch $batch): int
    {
        $started = $this->sharedFlags === null
            ? $batch->limit
            : max($batch->receivedCount, $this->sharedFlags->takeBack($batch->id, $batch->limit));

        return min($batch->limit, $started);
    }

    /** Returns whether the worker has begun any task, or died while it read a batch, as far as the pool knows. */
    public function hasBegun(): bool
    {
        return $this->outcomeCount > 0 || $this->lastStartedTask() !== null || $this->diedWhileReading();
    }

    /** Returns whether the worker ran out of memory before it started a task of the oldest batch that is not done. */
    public function diedWhileReading(): bool
    {
        $first = $this->firstBatch();

        return $first !== null && $this->createKillFailure === null && $this->startedCount($first) === 0
            && $this->exhaustedBytes() !== null;
    }

    /**
     * Returns whether the running task's data probably used up the memory before the worker called the task's callable.
     *
     * @param int $bytes size of the task's data
     */
    public function lackedMemoryForData(int $bytes): bool
    {
        return $this->wasReceiving && $this->canExhaustMemory($bytes);
    }

    /**
     * Returns the bytes of memory that earlier tasks had kept, if memory ran out because of these bytes; otherwise 0.
     *
     * @param int $bytes size of the running task's data
     */
    public function keptMemory(int $bytes): int
    {
        $kept = $this->memoryBefore - $this->initialMemory;
        $isCause = $kept >= self::MIN_KEPT_SHARE * ($this->exhaustedBytes() ?? \INF);

        return $isCause && !$this->canExhaustMemory($bytes) ? $kept : 0;
    }

    /** Returns whether a signal ended the worker, or the process of its fork or thread. False after a failed start. */
    public function wasKilled(): bool
    {
        return $this->startFailure === null && isset($this->exit[1]);
    }

    public function exitDescription(): string
    {
        [$exitCode, $signal] = $this->exit ?? [null, null];

        return $signal === null ? 'exit code ' . ($exitCode ?? 'unknown') : "signal {$signal}";
    }

    public function failure(): WorkerStartException
    {
        $reason = $this->exitReport === '' ? 'exit(' . ($this->exit[0] ?? '') . ')' : $this->exitReport;

        return $this->startFailure ?? $this->group->startup->ended(
            $this->loss ?? $reason ?? $this->exitDescription(),
            $this->stderr,
        );
    }

    private function canExhaustMemory(int $bytes): bool
    {
        $exhausted = $this->exhaustedBytes();

        return $exhausted !== null && $bytes >= $exhausted / self::MEMORY_PER_DATA_BYTE;
    }

    /** Returns at how many bytes the worker ran out of memory: 0 if unknown, null if it did not run out of memory. */
    private function exhaustedBytes(): ?int
    {
        $pattern = '/^(?:Allowed memory size of|Out of memory)(?: \(?(?:allocated )?(\d+))?/';

        return preg_match($pattern, $this->exitReport ?? '', $match) === 1 ? (int) ($match[1] ?? 0) : null;
    }

    private function beginToEnd(): void
    {
        if (!$this->isEnding) {
            $this->isEnding = true;
            $this->group->events->startedToEnd();
        }
    }

    private function endIn(float $seconds): void
    {
        $end = static fn(self $worker) => $worker->group->context->end($worker->id);
        $this->timers[] = WeakTimer::after($seconds, $this, $end);
    }
}
