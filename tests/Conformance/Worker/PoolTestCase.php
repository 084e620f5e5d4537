<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Psr\Log\LoggerInterface;
use Spindle\Tests\ProcessForEachWorker;
use Spindle\Worker\Executor;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

/** Base class of the tests of worker pools. */
abstract class PoolTestCase extends ExecutorTestCase
{
    use ProcessForEachWorker;

    abstract protected function context(): WorkerContext;

    protected function make(?\Closure $onReport): Executor
    {
        return $this->pool(onReport: $onReport);
    }

    protected function itemsAhead(): int
    {
        return 64;
    }

    /**
     * @param (\Closure(string, bool): void)|null $onOutput
     * @param (\Closure(mixed): void)|null        $onReport
     */
    protected function pool(
        int $workers = 2,
        int|TaskRetryPolicy $retries = 0,
        ?float $timeout = null,
        float $gracePeriod = 1.0,
        float $idleTimeout = 60.0,
        ?int $maxTasks = null,
        ?float $maxLifetime = null,
        ?int $maxMemoryGrowthBytes = null,
        ?string $memoryLimit = null,
        ?string $bootstrap = null,
        ?\Closure $initialize = null,
        float $startTimeout = 20.0,
        ?\Closure $onOutput = null,
        ?\Closure $onReport = null,
        ?LoggerInterface $logger = null,
    ): WorkerPool {
        return $this->held(new WorkerPool($workers, $retries, new WorkerPoolOptions(
            context: $this->context(),
            timeout: $timeout,
            gracePeriod: $gracePeriod,
            idleTimeout: $idleTimeout,
            maxTasks: $maxTasks,
            maxLifetime: $maxLifetime,
            maxMemoryGrowthBytes: $maxMemoryGrowthBytes,
            memoryLimit: $memoryLimit,
            bootstrap: $bootstrap,
            initialize: $initialize,
            startTimeout: $startTimeout,
            onOutput: $onOutput,
            onReport: $onReport,
            logger: $logger,
        )));
    }
}
