<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Provides tasks and receives their outcomes. A source is one map() call, or all submitted tasks of a pool. */
interface TaskSource
{
    public function sizing(): BatchSizing;

    /** Returns the callable of all tasks, encoded by {@see TaskCode}; null if each task has its own callable. */
    public function code(): ?string;

    public function id(): int;

    /** Returns how many batches workers could get from this source now. */
    public function demand(): int;

    /** @param int $workers number of workers that share the available tasks */
    public function take(int $maxTasks, int $workers): ?Batch;

    /**
     * Receives the results of consecutive tasks of a batch. All of these tasks succeeded.
     *
     * @param string|array{string, list<string>} $results from {@see ValuePacking}: encodeList() or decode()
     * @param int $size approximate size of the results in bytes
     */
    public function succeeded(Batch $batch, int $from, int $count, string|array $results, int $size): void;

    /** @param int $size approximate size of the failure in bytes */
    public function failed(Batch $batch, int $index, \Throwable $failure, int $size = 0): void;

    public function streamStarted(Batch $batch, int $index, ItemStream $stream): void;

    public function isAbandoned(): bool;

    public function close(): void;

    /** Fails submitted tasks that were never in a batch; or ends a map() call, which then ignores further outcomes. */
    public function abort(\Throwable $reason): void;
}
