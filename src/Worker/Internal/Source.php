<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Where tasks come from, and their outcomes go to. */
interface Source
{
    public function pace(): Pace;

    /** What all its tasks call, as {@see TaskCode} has it; null where each has its own. */
    public function code(): ?string;

    /** A number of its own. */
    public function id(): int;

    /** How many workers could have a batch of it now. */
    public function demand(): int;

    /**
     * The next tasks, which then are in the caller's care; null when there are none now.
     *
     * @param int $most    tasks
     * @param int $workers that share what there is
     */
    public function take(int $most, int $workers): ?Batch;

    /**
     * Results of some of a batch's tasks, none of which failed.
     *
     * @param string|array{string, list<string>} $results as {@see Packing::list()} or {@see Packing::split()} has them
     * @param int                                $size    in bytes, about
     */
    public function succeeded(Batch $batch, int $from, int $count, string|array $results, int $size): void;

    /** The outcome of one task. */
    public function failed(Batch $batch, int $index, \Throwable $failure): void;

    /** One task is a generator, and this yields its items. */
    public function streams(Batch $batch, int $index, Stream $stream): void;

    /** Whether nobody waits for its outcomes any more. */
    public function isLeft(): bool;

    /** No more input: what was taken from it is the last. */
    public function close(): void;

    /** None of its tasks will have an outcome any more. */
    public function abort(\Throwable $reason): void;
}
