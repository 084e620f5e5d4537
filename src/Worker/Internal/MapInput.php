<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Worker\UnserializableException;

/**
 * Makes batches from the input of a {@see MapRun}. One batch is kept ready for the next idle worker. The input is read
 * in callbacks of the event loop, because its code may suspend the fiber.
 */
final class MapInput
{
    /** Largest size of the arguments in a batch, in bytes. */
    private const MAX_BATCH_BYTES = 1 << 18;

    /** After this many nanoseconds of reading, a batch is sent even if it has fewer tasks. */
    private const FILL_TIMEOUT_NANOSECONDS = 1_000_000;

    /** Number of tasks between two readings of the clock. */
    private const TASKS_PER_CLOCK_CHECK = 16;

    /** Number of tasks in batches so far, and the size of their arguments in bytes. */
    public int $pulledCount = 0;
    public float $pulledBytes = 0.0;

    /** Exception to throw when all results were delivered. */
    public ?\Throwable $failure = null;

    /** Number of values in the input; PHP_INT_MAX if it is unknown. */
    private readonly int $valueCount;

    /** @var \Generator<int, null, mixed, void>|null reads the input, and yields whenever a batch is complete */
    private ?\Generator $puller;

    /** @var list<bool|int|float|string|null|EncodedValue> values that were read and are in no batch */
    private array $tasks = [];

    /** @var list<mixed> */
    private array $keys = [];
    private bool $packed = false;
    private bool $integers = true;
    private int $taskBytes = 0;

    private ?Batch $readyBatch = null;

    /** Whether a read is queued or runs; and whether it has not returned within one turn of the loop. */
    private bool $pulling = false;
    private bool $suspended = false;

    /** Whether nothing more will be read; and whether the map needs no more tasks. */
    private bool $exhausted = false;
    private bool $dropped = false;

    /** @param iterable<mixed, mixed> $input */
    public function __construct(
        private readonly TaskDispatcher $dispatcher,
        private readonly MapRun $run,
        private readonly BatchSizing $sizing,
        private iterable $input,
    ) {
        $this->valueCount = self::countValues($input);
        $this->puller = $this->batches();
    }

    /** Reads a batch in a callback of the loop, unless values are waiting or no more input can be read. */
    public function pullSoon(): void
    {
        if (
            $this->pulling
            || $this->exhausted
            || $this->dropped
            || $this->readyBatch !== null
            || $this->tasks !== []
            || !$this->run->hasRoom()
        ) {
            return;
        }
        $this->pulling = true;
        EventLoop::queue($this->pull(...));
    }

    /** Returns an upper bound of the number of available batches: each value that was not read counts as a batch. */
    public function demand(): int
    {
        if ($this->dropped) {
            return 0;
        }
        $readyCount = $this->readyBatch === null ? 0 : 1;

        return $this->exhausted || !$this->run->hasRoom()
            ? $readyCount + ($this->tasks === [] ? 0 : 1)
            : $readyCount + max(0, $this->valueCount - $this->pulledCount);
    }

    public function take(int $maxTasks): ?Batch
    {
        if ($this->readyBatch === null && ($this->suspended || !$this->pulling)) {
            $this->completeBatch(); // use the incomplete batch, because the input is slow
        }
        $batch = $this->readyBatch;
        $this->readyBatch = null;
        if ($batch !== null && \count($batch->tasks) > $maxTasks) {
            $this->readyBatch = $batch->slice($maxTasks, \count($batch->tasks));
            $batch = $batch->slice(0, $maxTasks);
        }
        if ($this->readyBatch === null) {
            $this->pullSoon();
        }

        return $batch;
    }

    /**
     * Stops reading. The failure is thrown after the last result, unless the input was read completely. A running read
     * is not awaited, because code of the input may have closed the pool. The value of that read is dropped.
     */
    public function close(\Throwable $failure): void
    {
        if (!$this->exhausted) {
            $this->exhausted = true;
            $this->suspended = $this->pulling;
            $this->failure = $this->isReadCompletely() ? null : $failure;
        }
    }

    /** Drops everything that no worker has, and stops reading. */
    public function drop(): void
    {
        $this->dropped = true;
        $this->readyBatch = null;
        $this->tasks = $this->keys = [];
    }

    /** Releases the input, so that PHP can destroy it. */
    public function release(): void
    {
        $this->drop();
        $this->puller = null;
        $this->input = [];
    }

    /** Returns whether no further batch will be made. A batch may still wait for a worker. */
    public function isOver(): bool
    {
        return $this->exhausted && $this->tasks === [];
    }

    /** Returns whether all values were read; false for an iterator, whose end only another read would reveal. */
    private function isReadCompletely(): bool
    {
        return \is_array($this->input) && $this->pulledCount + \count($this->tasks) === $this->valueCount;
    }

    private function pull(): void
    {
        if ($this->isDropped() || $this->dispatcher->isFork()) {
            return;
        }
        $turn = \is_array($this->input) ? null : EventLoop::unreference(EventLoop::defer(function (): void {
            $this->suspended = true; // the read still runs at the next turn of the loop
            $this->dispatcher->fill();
        }));
        try {
            $this->puller?->next();
        } catch (\Throwable $failure) {
            $this->failure ??= $failure;
        }
        if ($turn !== null) {
            EventLoop::cancel($turn);
        }
        $this->pulling = $this->suspended = false;
        if ($this->puller?->valid() !== true) {
            $this->exhausted = true;
        }
        $this->dispatcher->replaceOutdatedWorkers();
        if ($this->isDropped()) {
            return;
        }
        $this->completeBatch();
        $this->dispatcher->fill(true);
        $this->run->onPulled();
    }

    /** Returns the property through a method, because callbacks change it and static analysis does not know that. */
    private function isDropped(): bool
    {
        return $this->dropped;
    }

    private function completeBatch(): void
    {
        if ($this->tasks === [] || $this->readyBatch !== null || $this->dropped) {
            return;
        }
        $count = \count($this->tasks);
        $this->readyBatch = new Batch(
            $this->run,
            $this->pulledCount,
            $this->tasks,
            $this->keys,
            $this->packed,
            bytesEach: $this->taskBytes / $count,
            integers: $this->integers,
        );
        $this->pulledCount += $count;
        $this->pulledBytes += $this->taskBytes;
        $this->tasks = $this->keys = [];
        $this->packed = false;
        $this->integers = true;
        $this->taskBytes = 0;
    }

    /** @return \Generator<int, null, mixed, void> */
    private function batches(): \Generator
    {
        yield; // so that every read can start with next()
        $tasks = &$this->tasks;
        $keys = &$this->keys;
        $maxTasks = $this->sizing->size();
        $deadline = hrtime(true) + self::FILL_TIMEOUT_NANOSECONDS;
        $read = 0;
        // Number of values after which size and time are checked.
        $nextCheck = min($maxTasks, self::TASKS_PER_CLOCK_CHECK);
        foreach ($this->input as $key => $value) {
            if (\is_int($value)) { // fast path, because the smallest tasks are the most numerous
                // Adjacent, so that no signal handler throws in between: PHP runs handlers at jumps and calls.
                $tasks[] = $value;
                $keys[] = $key;
            } else {
                $this->add($key, $value);
                $nextCheck = $this->taskBytes < self::MAX_BATCH_BYTES ? $nextCheck : 0;
            }
            if ($this->suspended) {
                if ($this->exhausted) {
                    array_pop($tasks);
                    array_pop($keys);

                    return;
                }
                $this->dispatcher->replaceOutdatedWorkers();
                if ($this->dropped) {
                    return;
                }
                $this->dispatcher->fill(true);
            }
            if (++$read < $nextCheck) {
                continue;
            }
            if ($read < $maxTasks && $this->taskBytes < self::MAX_BATCH_BYTES && hrtime(true) < $deadline) {
                $nextCheck = min($maxTasks, $read + self::TASKS_PER_CLOCK_CHECK);
                continue;
            }
            yield;
            $maxTasks = $this->sizing->size();
            $deadline = hrtime(true) + self::FILL_TIMEOUT_NANOSECONDS;
            $read = 0;
            $nextCheck = min($maxTasks, self::TASKS_PER_CLOCK_CHECK);
        }
    }

    /** @throws UnserializableException */
    private function add(mixed $key, mixed $value): void
    {
        $this->integers = false;
        if ($value === null || \is_bool($value) || \is_float($value)) {
            $task = $value;
        } elseif (\is_string($value) && \strlen($value) < WorkerProtocol::MIN_LONG_STRING_BYTES) {
            $task = $value;
            $this->taskBytes += \strlen($value);
        } else {
            $task = self::encode($key, $value);
            $this->taskBytes += \strlen($task->bytes);
            $this->packed = true;
        }
        // The statements are adjacent and last, for the reason given in batches().
        $this->tasks[] = $task;
        $this->keys[] = $key;
    }

    /** @throws UnserializableException */
    private static function encode(mixed $key, mixed $value): EncodedValue
    {
        return \is_string($value)
            ? new EncodedValue($value, WorkerProtocol::STRING)
            : new EncodedValue(
                ValueSerializer::serialize($value, 'The argument' . ValueSerializer::keySuffix($key)),
                WorkerProtocol::SERIALIZED,
            );
    }

    /** @param iterable<mixed, mixed> $input */
    private static function countValues(iterable $input): int
    {
        try {
            return \is_array($input) || $input instanceof \Countable ? \count($input) : \PHP_INT_MAX;
        } catch (\Throwable) {
            return \PHP_INT_MAX; // the number only decides how many workers to start
        }
    }
}
