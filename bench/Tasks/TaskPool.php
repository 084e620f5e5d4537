<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/** Runs PHP callables in a pool of workers, or in a substitute. */
interface TaskPool
{
    /**
     * Calls the task with each input, and returns after the last result.
     *
     * @template T
     *
     * @param iterable<T>           $inputs
     * @param callable(T): mixed    $task
     * @param \Closure(mixed): void $take receives each result as soon as it is available
     */
    public function each(iterable $inputs, callable $task, \Closure $take): void;

    /** Ends everything that the pool has started, and waits for it. */
    public function close(): void;
}
