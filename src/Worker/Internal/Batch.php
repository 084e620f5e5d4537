<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\Clock;

/** Tasks of one source (a map, or the submissions) that a worker gets in one frame and runs one after the other. */
final class Batch
{
    /** Number of the batch among all batches of its worker, starting at 1; 0 before the batch is sent. */
    public int $id = 0;

    /** Number of results received. Results arrive in the order of the tasks. */
    public int $receivedCount = 0;

    /** Index of the first task that was taken back; the number of tasks if no task was taken back. */
    public int $limit;

    /** Whether no other worker may run or retry the tasks, because this process has changed its credentials. */
    public bool $isPinned = false;

    /** hrtime() when this became the worker's current batch. Without SharedFlags, results and read items update it. */
    public int $firstSince = 0;

    public int $elapsed = 0;

    /** Nanoseconds that the longest finished task took. */
    public int $longest = 0;

    /**
     * @param int $first number of the first task among the tasks of its map, starting at 0; not used for submissions
     * @param list<bool|int|float|string|null|EncodedValue> $tasks arguments of a map's tasks; or submissions
     * @param list<mixed> $keys keys of the map's input; for submissions, the same list as $tasks
     * @param bool $packed whether any element of $tasks is an {@see EncodedValue}
     * @param int $attempt number of this attempt; the first attempt is 1
     * @param int $crashes number of crashes in earlier attempts; 0 for several tasks, because a task is retried alone
     * @param float $bytesEach mean size of an argument, in bytes
     * @param bool $integers whether all arguments are integers
     * @param float|null $postponedSince time of {@see Clock::now()} of the task's first RetryLaterException
     */
    public function __construct(
        public readonly TaskSource $source,
        public readonly int $first,
        public readonly array $tasks,
        public readonly array $keys,
        public readonly bool $packed,
        public readonly int $attempt = 1,
        public readonly int $crashes = 0,
        public readonly float $bytesEach = 0.0,
        public readonly bool $integers = false,
        public readonly ?float $postponedSince = null,
    ) {
        $this->limit = \count($tasks);
    }

    /** Returns a batch of the tasks from index $from to $to - 1. Adds $attempts and $crashes to those of this batch. */
    public function slice(int $from, int $to, int $attempts = 0, int $crashes = 0, ?float $postponedSince = null): self
    {
        return new self(
            $this->source,
            $this->first + $from,
            \array_slice($this->tasks, $from, $to - $from),
            \array_slice($this->keys, $from, $to - $from),
            $this->packed,
            $this->attempt + $attempts,
            $this->crashes + $crashes,
            $this->bytesEach,
            $this->integers,
            $postponedSince ?? $this->postponedSince,
        );
    }

    public function retry(int $index, bool $crashed): self
    {
        return $this->slice($index, $index + 1, 1, $crashed ? 1 : 0);
    }

    public function postpone(int $index): self
    {
        return $this->slice($index, $index + 1, postponedSince: $this->postponedSince ?? Clock::now());
    }

    public function key(int $index): mixed
    {
        return $this->source->code() === null ? null : $this->keys[$index];
    }

    /** Returns the size of a task in bytes: the argument, and the callable with its captured variables. */
    public function bytesOf(int $index): int
    {
        $task = $this->tasks[$index];

        return \strlen($task instanceof EncodedValue ? $task->bytes : (string) $task)
            + \strlen((string) $this->source->code());
    }

    /** @return array{string, string} head and body of the payload of a TASKS frame */
    public function payload(): array
    {
        $head = pack(
            'VVC',
            $this->source->id(),
            $this->attempt,
            ($this->packed ? WorkerProtocol::PACKED : 0)
                | ($this->source->sizing()->isEager() ? WorkerProtocol::EAGER : 0),
        );
        if (!$this->packed) {
            /** @var list<bool|int|float|string|null> $tasks */
            $tasks = $this->tasks;

            return [$head, ValuePacking::encodeList($tasks, $this->integers)];
        }
        $packing = new ValuePacking();
        foreach ($this->tasks as $task) {
            $task instanceof EncodedValue ? $packing->add($task->kind, $task->bytes) : $packing->addPlain([$task]);
        }

        return [$head . $packing->head(), $packing->bytes];
    }
}
