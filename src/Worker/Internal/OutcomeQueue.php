<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/**
 * Keeps the outcomes of a {@see MapRun} until the caller reads them. map() yields them in the order of the tasks,
 * mapUnordered() in the order of arrival. A chunk has the outcomes of consecutive tasks that arrived together.
 *
 * The queue becomes full when its results have {@see self::MAX_BYTES}. The queue stays full until at most
 * {@see self::MIN_BYTES} are left.
 *
 * @phpstan-type Outcome string|array{string, list<string>}|\Throwable|\Generator<mixed, mixed, mixed, mixed>
 * @phpstan-type Chunk array{int, list<mixed>, Outcome, int, int, float}
 */
final class OutcomeQueue
{
    public const MAX_BYTES = 16 << 20;
    private const MIN_BYTES = self::MAX_BYTES >> 1;

    /** Size of the results in the queue, in bytes. Only this class writes this property and {@see $isFull}. */
    public int $bytes = 0;

    public bool $isFull = false;

    /**
     * Each chunk has: number of tasks, keys, outcome, bytes of the results, number of the attempt, bytes of the
     * arguments. The index is the number of the first task, or for mapUnordered() a number in the order of arrival.
     *
     * @var array<int, Chunk>
     */
    private array $chunks = [];

    private int $nextIndex = 0;

    /** For map(): number of the first task without an outcome. */
    private int $firstOpen = 0;

    /** For mapUnordered(): index in $chunks of the next chunk that arrives. */
    private int $nextArrival = 0;

    public function __construct(private readonly bool $inOrder) {}

    /**
     * @param int $from index of the first task in the batch
     * @param Outcome $outcome results of `$count` tasks from there on; or the failure or the generator of one task
     * @param int $size size of the results in bytes
     *
     * @return bool whether the results have reached the limit of the queue
     */
    public function add(
        Batch $batch,
        int $from,
        int $count,
        string|array|\Throwable|\Generator $outcome,
        int $size,
    ): bool {
        $keys = $count === \count($batch->keys) ? $batch->keys : \array_slice($batch->keys, $from, $count);
        $this->chunks[$this->inOrder ? $batch->first + $from : $this->nextArrival++] = [
            $count,
            $keys,
            $outcome,
            $size,
            $batch->attempt,
            $batch->bytesEach * $count,
        ];
        $this->bytes += $size;
        while ($this->inOrder && isset($this->chunks[$this->firstOpen])) {
            $this->firstOpen += $this->chunks[$this->firstOpen][0];
        }
        $isAtLimit = $this->bytes >= self::MAX_BYTES;
        $this->isFull = $this->isFull || $isAtLimit;

        return $isAtLimit;
    }

    /**
     * Returns the number of the first task without an outcome. This task may start although the queue is full, because
     * map() can yield no later outcome before this task's outcome. Returns null for mapUnordered(). Also returns null
     * if the queue has twice {@see self::MAX_BYTES} or more, and the caller still has earlier results to read.
     */
    public function firstOpen(): ?int
    {
        $mayStart = $this->firstOpen === $this->nextIndex || $this->bytes < 2 * self::MAX_BYTES;

        return $this->inOrder && $mayStart ? $this->firstOpen : null;
    }

    public function hasNext(): bool
    {
        return isset($this->chunks[$this->nextIndex]);
    }

    /**
     * @phpstan-impure
     *
     * @return Chunk|null the next chunk for the caller; null if this chunk has not arrived
     */
    public function shift(): ?array
    {
        $chunk = $this->chunks[$this->nextIndex] ?? null;
        if ($chunk !== null) {
            unset($this->chunks[$this->nextIndex]);
            $this->bytes -= $chunk[3];
            $this->nextIndex += $this->inOrder ? $chunk[0] : 1;
            $this->isFull = $this->isFull && $this->bytes > self::MIN_BYTES;
        }

        return $chunk;
    }

    /** Returns whether the batch has the task {@see firstOpen()}. If the queue is full, only this batch may start. */
    public function needs(Batch $batch): bool
    {
        $task = $this->firstOpen();

        return $task !== null && $batch->first <= $task && $task < $batch->first + $batch->limit;
    }

    public function clear(): void
    {
        $this->chunks = [];
        $this->bytes = 0;
        $this->isFull = false;
    }
}
