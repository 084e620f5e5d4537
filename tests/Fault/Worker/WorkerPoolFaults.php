<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\DeferredCancellation;
use Amp\Future;
use Amp\TimeoutException;
use Revolt\EventLoop;
use Spindle\Tests\Eventually;
use Spindle\Tests\LeakCheck;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\ProcessForEachWorker;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

/** Base class of the tests of faults in worker pools. */
abstract class WorkerPoolFaults extends TidyTestCase
{
    use OwnDirectory;
    use ProcessForEachWorker;

    /** Seconds to wait for outcomes. Less than the deadline of a test, which would leave the event loop unusable. */
    private const PATIENCE = 20.0;

    abstract protected function context(): WorkerContext;

    protected function deadline(): int
    {
        return Scale::isFull() ? 280 : 120;
    }

    /** @return WorkerPool a pool that prints nothing */
    protected function pool(
        int $workers,
        int|TaskRetryPolicy $retries = 0,
        ?float $timeout = null,
        float $gracePeriod = 1.0,
        ?int $maxTasks = null,
        ?string $memoryLimit = null,
        ?string $bootstrap = null,
        ?\Closure $initialize = null,
        float $startTimeout = 10.0,
        ?\Closure $onOutput = null,
        ?\Closure $onReport = null,
    ): WorkerPool {
        return new WorkerPool($workers, $retries, new WorkerPoolOptions(
            context: $this->context(),
            timeout: $timeout,
            gracePeriod: $gracePeriod,
            maxTasks: $maxTasks,
            memoryLimit: $memoryLimit,
            bootstrap: $bootstrap,
            initialize: $initialize,
            startTimeout: $startTimeout,
            onOutput: $onOutput ?? static fn() => null,
            onReport: $onReport,
        ));
    }

    /**
     * @param Future<mixed> $future
     *
     * @return mixed the result, or the exception that was thrown
     */
    protected static function outcome(Future $future): mixed
    {
        return self::outcomes([$future])[0];
    }

    /**
     * @param array<Future<mixed>> $futures
     *
     * @return array<mixed>
     */
    protected static function outcomes(array $futures): array
    {
        $patience = new DeferredCancellation();
        // A TimeoutCancellation would be held by exceptions with arguments in their traces, and would hold them.
        $timer = EventLoop::delay(
            self::PATIENCE,
            static fn() => $patience->cancel(new TimeoutException('There is no outcome')),
        );
        $outcomes = [];
        foreach ($futures as $key => $future) {
            try {
                $outcomes[$key] = $future->await($patience->getCancellation());
            } catch (\Throwable $thrown) {
                $outcomes[$key] = $thrown;
            }
        }
        EventLoop::cancel($timer);

        return $outcomes;
    }

    /** @param int $tasks concurrent tasks; if each worker runs one task only, the number of workers to start */
    protected static function assertUsable(WorkerPool $pool, int $tasks = 20): void
    {
        $futures = array_map(
            static fn(int $number): Future => $pool->submit(new Call('square', $number)),
            range(1, $tasks),
        );

        self::assertSame(
            array_map(TaskFunctions::square(...), range(1, $tasks)),
            self::outcomes($futures),
            'the pool is usable',
        );
    }

    /** @param string $file file to which a task writes its process id; @see TaskFunctions */
    protected static function pidIn(string $file): int
    {
        Eventually::holds(static fn(): bool => is_file($file), 'the task has begun', self::PATIENCE);

        return (int) file_get_contents($file);
    }

    /** @return array<int, string> command lines by process id */
    protected static function startedByThisTest(): array
    {
        return Processes::withVariable(LeakCheck::MARK, (string) getenv(LeakCheck::MARK));
    }

    /** @return array<int, string> processes of this test whose command line contains the text, by process id */
    protected static function descendantsWith(string $text): array
    {
        return array_filter(self::startedByThisTest(), static fn(string $line): bool => str_contains($line, $text));
    }

    /**
     * @param array<mixed> $results results of {@see RecordedTask}
     *
     * @return list<int>
     */
    protected static function numbersOf(array $results): array
    {
        $numbers = [];
        foreach ($results as $result) {
            self::assertIsInt($result, $result instanceof \Throwable ? $result->getMessage() : 'a result');
            $numbers[] = RecordedTask::numberOf($result);
        }

        return $numbers;
    }

    /** Returns the exit code if the kind of worker reports it. */
    protected function known(?int $exitCode): ?int
    {
        return $this->hasAProcessForEachWorker() ? $exitCode : null;
    }
}
