<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

/**
 * Keeps the outcomes of a map() call until the caller's foreach loop takes them. The foreach loop gets the outcomes in
 * the order of their numbers, which begin at 0. Outcomes that would exceed `$maxMemoryBytes` are written to a file.
 */
final class OutcomeBuffer implements \Countable
{
    /**
     * Outcomes with key and id, by number. An outcome is a frame, the range of a frame in the file, a generator of
     * items, or null. Null means that the outcome is lost, or that the engine refused to return it.
     *
     * @var array<int, array{string|array{int, int}|\Generator<mixed, mixed, mixed, mixed>|null, mixed, string}>
     */
    private array $outcomes = [];

    private readonly OutcomeFile $file;

    /** Bytes of all outcomes, in memory and in the file. */
    public int $totalBytes = 0;

    private int $memoryBytes = 0;

    private int $nextNumber = 0;

    public function __construct(private readonly int $maxMemoryBytes)
    {
        $this->file = new OutcomeFile();
    }

    /** @param string|\Generator<mixed, mixed, mixed, mixed>|null $outcome a frame, items, or null as in $outcomes */
    public function add(int $number, string|\Generator|null $outcome, mixed $key, string $id): void
    {
        $size = \is_string($outcome) ? \strlen($outcome) : 0;
        if (\is_string($outcome) && $this->memoryBytes > 0 && $this->memoryBytes + $size > $this->maxMemoryBytes) {
            $outcome = $this->file->write($outcome) ?? $outcome;
        }
        $this->outcomes[$number] = [$outcome, $key, $id];
        $this->memoryBytes += \is_string($outcome) ? $size : 0;
        $this->totalBytes += $size;
    }

    public function hasNext(): bool
    {
        return isset($this->outcomes[$this->nextNumber]);
    }

    /** Skips the numbers before the next outcome, because their jobs will have none. Returns {@see hasNext()}. */
    public function skipMissing(): bool
    {
        $this->nextNumber = min([\PHP_INT_MAX, ...array_keys($this->outcomes)]);

        return $this->hasNext();
    }

    /**
     * Removes the next outcome and returns it. Must be called only if {@see hasNext()} returns true.
     *
     * @return array{string|\Generator<mixed, mixed, mixed, mixed>|null, mixed, string} outcome, key and id
     */
    public function takeNext(): array
    {
        [$outcome, $key, $id] = $this->outcomes[$this->nextNumber];
        unset($this->outcomes[$this->nextNumber]);
        ++$this->nextNumber;
        if (\is_array($outcome)) {
            $outcome = $this->file->read($outcome);
        } else {
            $this->memoryBytes -= \is_string($outcome) ? \strlen($outcome) : 0;
        }
        $this->totalBytes -= \is_string($outcome) ? \strlen($outcome) : 0;

        return [$outcome, $key, $id];
    }

    /** @return list<string> ids of dropped outcomes, except generators, whose tasks {@see StoredItems} ends */
    public function clear(): array
    {
        $frames = array_filter($this->outcomes, static fn(array $outcome): bool => !$outcome[0] instanceof \Generator);
        $this->outcomes = [];

        return array_column($frames, 2);
    }

    public function count(): int
    {
        return \count($this->outcomes);
    }
}
