<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/** A pool whose results are read in a loop. For tiny tasks, a callback per result would cost as much as the task. */
interface IterablePool extends TaskPool
{
    /**
     * @template T
     *
     * @param iterable<T>        $inputs
     * @param callable(T): mixed $task
     *
     * @return iterable<mixed>
     */
    public function results(iterable $inputs, callable $task): iterable;
}
