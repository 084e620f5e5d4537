<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Amp\Future;
use Amp\Parallel\Worker\ContextWorkerFactory;
use Amp\Parallel\Worker\ContextWorkerPool;

use function Amp\async;
use function Amp\Future\await;

final readonly class AmpTasks implements SubmittingPool
{
    private ContextWorkerPool $pool;

    public function __construct(private int $workers)
    {
        $this->pool = new ContextWorkerPool($workers, new ContextWorkerFactory(Bootstrap::file()));
    }

    /** Runs two fibers per worker, so that no worker waits for its next task. */
    public function each(iterable $inputs, callable $task, \Closure $take): void
    {
        $inputs = (static fn(): \Generator => yield from $inputs)();
        $fiber = function () use ($inputs, $task, $take): void {
            while ($inputs->valid()) {
                $call = new Call($task, $inputs->current());
                $inputs->next();
                $take($this->pool->submit(new AmpCall($call))->await());
            }
        };
        await(array_map(static fn() => async($fiber), range(1, 2 * $this->workers)));
    }

    public function submit(callable $task): Future
    {
        return async(fn(): mixed => $this->pool->submit(new AmpCall($task))->await());
    }

    public function close(): void
    {
        $this->pool->shutdown();
    }
}
