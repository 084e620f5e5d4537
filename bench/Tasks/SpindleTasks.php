<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Amp\Future;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

final readonly class SpindleTasks implements SubmittingPool, IterablePool
{
    private WorkerPool $pool;

    /** @param bool $inOrder whether to use `map()` (results in the order of inputs) instead of `mapUnordered()` */
    public function __construct(
        int $workers,
        WorkerContext $context = WorkerContext::Process,
        private bool $inOrder = false,
    ) {
        $this->pool = new WorkerPool(
            $workers,
            options: new WorkerPoolOptions(context: $context, bootstrap: Bootstrap::file()),
        );
    }

    public function each(iterable $inputs, callable $task, \Closure $take): void
    {
        foreach ($this->results($inputs, $task) as $result) {
            $take($result);
        }
    }

    public function results(iterable $inputs, callable $task): \Generator
    {
        return $this->inOrder ? $this->pool->map($inputs, $task) : $this->pool->mapUnordered($inputs, $task);
    }

    public function submit(callable $task): Future
    {
        return $this->pool->submit($task);
    }

    public function close(): void
    {
        $this->pool->close();
    }
}
