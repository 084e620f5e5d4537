<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/** One whose results are taken in a loop: of tiny tasks, a call for each would take as much time as they do. */
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
