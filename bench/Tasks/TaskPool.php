<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/** Runs PHP callables: a pool of workers, or what stands in for one. */
interface TaskPool
{
    /**
     * Calls the task with each input; the last result is there when this returns.
     *
     * @template T
     *
     * @param iterable<T>           $inputs
     * @param callable(T): mixed    $task
     * @param \Closure(mixed): void $take gets each result as soon as it is there
     */
    public function each(iterable $inputs, callable $task, \Closure $take): void;

    /** Ends all that it has started, and waits for that. */
    public function close(): void;
}
