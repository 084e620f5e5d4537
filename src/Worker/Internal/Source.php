<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Provides tasks and receives their outcomes: a map, or all submissions of a pool. */
interface Source
{
    public function sizing(): BatchSizing;

    /** Returns the callable of all tasks, from {@see TaskCode::encode()}; null if each task has its own callable. */
    public function code(): ?string;

    /** Returns a number that no other source of the pool has. */
    public function id(): int;

    /** Returns how many workers could be given a batch now. */
    public function demand(): int;

    /** @param int $workers number of workers that share the available tasks */
    public function take(int $maxTasks, int $workers): ?Batch;

    /**
     * Receives results of consecutive tasks of a batch, none of which failed.
     *
     * @param string|array{string, list<string>} $results from {@see ValuePacking::encodeList()} or `decode()`
     * @param int $size approximate size in bytes
     */
    public function succeeded(Batch $batch, int $from, int $count, string|array $results, int $size): void;

    public function failed(Batch $batch, int $index, \Throwable $failure): void;

    public function streamStarted(Batch $batch, int $index, ItemStream $stream): void;

    /** Returns whether the caller no longer waits for outcomes. */
    public function isAbandoned(): bool;

    /** Stops reading the input of a map. */
    public function close(): void;

    /** Fails submissions that no worker has had. Ends a map, whose tasks get no further outcomes. */
    public function abort(\Throwable $reason): void;
}
