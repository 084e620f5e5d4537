<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\Async\InputConsumer;
use Spindle\Internal\Async\InputPump;
use Spindle\Worker\UnserializableException;

/**
 * Makes batches from the input of a {@see MapRun}. Keeps one batch ready for the next worker that can take a batch.
 * Serializes arrays and objects as soon as they are read, because the caller may change an object later.
 */
final class MapInput implements InputConsumer
{
    /** When the arguments of a batch have this many bytes, no more tasks are added to the batch. */
    private const MAX_BATCH_BYTES = 1 << 18;

    /** Number of tasks that are or were in a batch, and bytes of their arguments. Only this class writes these two. */
    public int $batchedCount = 0;

    public float $batchedBytes = 0.0;

    /** Number of values in the input; PHP_INT_MAX if it is unknown. */
    private readonly int $valueCount;

    private readonly InputPump $pump;

    /** @var list<bool|int|float|string|null|EncodedValue> values that were read, but are not in a batch yet */
    private array $tasks = [];

    /** @var list<mixed> */
    private array $keys = [];
    private bool $packed = false;
    private bool $integers = true;
    private int $taskBytes = 0;

    private ?Batch $readyBatch = null;

    /**
     * @param MapRun|null $run set to null by {@see drop()}, when the map needs no more tasks
     * @param iterable<mixed, mixed> $input
     */
    public function __construct(
        private readonly TaskDispatcher $dispatcher,
        private ?MapRun $run,
        private readonly BatchSizing $sizing,
        iterable $input,
    ) {
        $this->valueCount = self::countValues($input);
        $this->pump = new InputPump($this, $input);
    }

    /** Reads values for a batch in a callback of the event loop, if {@see room()} is not 0 and unread input is left. */
    public function pullSoon(): void
    {
        $this->pump->pullSoon();
    }

    /** Returns the maximum number of further batches: the ready one, and one per remaining value if $run has room. */
    public function demand(): int
    {
        if ($this->run === null) {
            return 0;
        }
        $readyCount = $this->readyBatch === null ? 0 : 1;

        return $this->pump->isOver || !$this->run->hasRoom()
            ? $readyCount + ($this->tasks === [] ? 0 : 1)
            : $readyCount + max(0, $this->valueCount - $this->batchedCount);
    }

    public function take(int $maxTasks): ?Batch
    {
        if ($this->pump->isSuspended || $this->pump->isOver || !$this->pump->isReading) {
            $this->completeBatch(); // do not wait until the batch is full: no value is available now
        }
        $batch = $this->readyBatch;
        $this->readyBatch = null;
        if ($batch !== null && \count($batch->tasks) > $maxTasks) {
            $this->readyBatch = $batch->slice($maxTasks, \count($batch->tasks));
            $batch = $batch->slice(0, $maxTasks);
        }
        $this->pump->pullSoon();

        return $batch;
    }

    /** Stops reading. After the last result, map() throws the failure, unless the input has already ended. */
    public function close(\Throwable $failure): void
    {
        $this->pump->close($failure);
    }

    public function drop(): void
    {
        $this->run = $this->readyBatch = null;
        $this->tasks = $this->keys = [];
    }

    public function release(): void
    {
        $this->drop();
        $this->pump->release();
    }

    /** @throws \Throwable see {@see InputPump::refuse()} */
    public function refuse(\Throwable $refusal): never
    {
        $this->drop();
        $this->pump->refuse($refusal);
    }

    /** Returns whether the last batch has been made. This batch may still wait for a worker. */
    public function isOver(): bool
    {
        return $this->pump->isOver && $this->tasks === [];
    }

    public function failure(): ?\Throwable
    {
        return $this->pump->failure;
    }

    public function room(): int
    {
        if ($this->run === null || $this->readyBatch !== null || $this->taskBytes >= self::MAX_BATCH_BYTES) {
            return 0;
        }
        if ($this->tasks === [] && (!$this->run->hasRoom() || $this->dispatcher->isInFork())) {
            return 0;
        }

        return max(0, $this->sizing->size - \count($this->tasks));
    }

    public function onValues(array $keys, array $values): void
    {
        $last = $values[array_key_last($values)];
        if (\is_int($last) || \is_string($last)) {
            $this->addPlain($keys, $values);
        } else {
            $this->addPlain(\array_slice($keys, 0, -1), \array_slice($values, 0, -1));
            $this->add($keys[array_key_last($keys)], $last);
        }
    }

    public function onSuspended(): void
    {
        $this->dispatcher->replaceOutdatedWorkers();
        if (!$this->isDropped()) {
            $this->dispatcher->fill();
        }
    }

    public function onPaused(): void
    {
        if ($this->isDropped() || $this->dispatcher->isInFork()) {
            return;
        }
        $this->dispatcher->replaceOutdatedWorkers();
        if ($this->isDropped()) {
            return;
        }
        $this->completeBatch();
        $this->dispatcher->fill(true);
        $this->run?->onPulled();
    }

    /** Returns whether drop() was called. A method, because static analysis assumes that $run does not change. */
    private function isDropped(): bool
    {
        return $this->run === null;
    }

    private function completeBatch(): void
    {
        if ($this->tasks === [] || $this->readyBatch !== null || $this->run === null) {
            return;
        }
        $count = \count($this->tasks);
        $this->readyBatch = new Batch(
            $this->run,
            $this->batchedCount,
            $this->tasks,
            $this->keys,
            $this->packed,
            bytesEach: $this->taskBytes / $count,
            integers: $this->integers,
        );
        $this->batchedCount += $count;
        $this->batchedBytes += $this->taskBytes;
        $this->tasks = $this->keys = [];
        $this->packed = false;
        $this->integers = true;
        $this->taskBytes = 0;
    }

    /**
     * @param list<mixed> $keys
     * @param list<mixed> $values integers and strings
     */
    private function addPlain(array $keys, array $values): void
    {
        foreach ($values as $i => $value) {
            if (\is_string($value)) {
                $this->integers = false;
                $this->taskBytes += \strlen($value);
                if (\strlen($value) >= WorkerProtocol::MIN_LONG_STRING_BYTES) {
                    $values[$i] = new EncodedValue($value, WorkerProtocol::STRING);
                    $this->packed = true;
                }
            }
        }
        /** @var list<int|string|EncodedValue> $values */
        // One statement without calls sets both lists, so that no signal handler can throw between the two changes.
        [$this->tasks, $this->keys] = $this->tasks === []
            ? [$values, $keys]
            : [[...$this->tasks, ...$values], [...$this->keys, ...$keys]];
    }

    /** @throws UnserializableException */
    private function add(mixed $key, mixed $value): void
    {
        if ($value !== null && !\is_bool($value) && !\is_float($value)) {
            $bytes = ValueSerializer::serialize($value, 'The argument' . ValueSerializer::keySuffix($key));
            if ($this->pump->isOver) {
                return; // the value's __serialize() has closed the map
            }
            $value = new EncodedValue($bytes, WorkerProtocol::SERIALIZED);
            $this->taskBytes += \strlen($bytes);
            $this->packed = true;
        }
        $this->integers = false;
        $this->tasks[] = $value;
        $this->keys[] = $key;
    }

    /** @param iterable<mixed, mixed> $input */
    private static function countValues(iterable $input): int
    {
        try {
            return \is_array($input) || $input instanceof \Countable ? \count($input) : \PHP_INT_MAX;
        } catch (\Throwable) {
            return \PHP_INT_MAX; // an estimate is enough, because the number only decides how many workers to start
        }
    }
}
