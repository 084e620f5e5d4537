<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Spindle\Worker\TaskGroup;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

/** Spindle's pool with a list of tasks, as in Pumice's API. */
final readonly class SpindleTaskList implements TaskPool
{
    private WorkerPool $pool;

    public function __construct(int $workers)
    {
        $this->pool = new WorkerPool($workers, options: new WorkerPoolOptions(bootstrap: Bootstrap::file()));
    }

    public function each(iterable $inputs, callable $task, \Closure $take): void
    {
        $tasks = new TaskGroup($this->pool);
        foreach ($inputs as $input) {
            $tasks->add(new Call($task, $input))->then($take);
        }
        $tasks->wait();
    }

    public function close(): void
    {
        $this->pool->close();
    }
}
