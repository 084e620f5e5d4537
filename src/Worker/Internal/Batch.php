<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Tasks of one source that are sent to a worker together and run there one after the other. */
final class Batch
{
    /** Its number at the worker that has it. */
    public int $id = 0;

    /** Results that have come: those of its first tasks. */
    public int $arrived = 0;

    /** Tasks from here on were taken back. */
    public int $limit;

    /**
     * Whether its worker has former credentials, and others must not run its tasks: those have no further attempt, and
     * fail if they were not started.
     */
    public bool $isStranded = false;

    /** When it became the first of its worker, in nanoseconds of {@see hrtime()}; 0 while it waits for another one. */
    public int $since = 0;

    /** What its results told so far: nanoseconds that its tasks took, and the longest of them. */
    public int $elapsed = 0;
    public int $longest = 0;

    /**
     * @param int                                         $first   the number of its first task in the source
     * @param list<bool|int|float|string|null|Encoded>    $tasks   arguments, or tasks with none
     * @param list<mixed>                                 $keys    of the input; or the submissions
     * @param bool                                        $packed  whether any of the tasks is an {@see Encoded}
     * @param int                                         $attempt of its tasks, 1 at first
     * @param int                                         $crashes of workers that its only task has ended; 0 for more tasks
     * @param float                                       $bytesEach of an argument, in the mean
     * @param bool                                        $integers  whether all tasks are
     */
    public function __construct(
        public readonly Source $source,
        public readonly int $first,
        public readonly array $tasks,
        public readonly array $keys,
        public readonly bool $packed,
        public readonly int $attempt = 1,
        public readonly int $crashes = 0,
        public readonly float $bytesEach = 0.0,
        public readonly bool $integers = false,
    ) {
        $this->limit = \count($tasks);
    }

    /** Some of its tasks, to be sent again. */
    public function slice(int $from, int $to): self
    {
        return new self(
            $this->source,
            $this->first + $from,
            \array_slice($this->tasks, $from, $to - $from),
            \array_slice($this->keys, $from, $to - $from),
            $this->packed,
            $this->attempt,
            $this->crashes,
            $this->bytesEach,
            $this->integers,
        );
    }

    /** One of its tasks, for another attempt. */
    public function again(int $index, bool $crashed): self
    {
        return new self(
            $this->source,
            $this->first + $index,
            [$this->tasks[$index]],
            [$this->keys[$index]],
            $this->packed,
            $this->attempt + 1,
            $this->crashes + ($crashed ? 1 : 0),
            $this->bytesEach,
            $this->integers,
        );
    }

    /** Of a task's input; null where there is none. */
    public function key(int $index): mixed
    {
        return $this->source->code() === null ? null : $this->keys[$index];
    }

    /**
     * For the worker.
     *
     * @return array{string, string} to be sent one after the other
     */
    public function payload(): array
    {
        $head = pack('VVC', $this->source->id(), $this->attempt, ($this->packed ? Protocol::PACKED : 0) | ($this->source->pace()->isEager() ? Protocol::EAGER : 0));
        if (!$this->packed) {
            /** @var list<bool|int|float|string|null> $tasks */
            $tasks = $this->tasks;

            return [$head, Packing::list($tasks, $this->integers)];
        }
        $packing = new Packing();
        foreach ($this->tasks as $task) {
            $task instanceof Encoded ? $packing->add($task->kind, $task->bytes) : $packing->addPlain([$task]);
        }

        return [$head . $packing->head(), $packing->bytes()];
    }
}
