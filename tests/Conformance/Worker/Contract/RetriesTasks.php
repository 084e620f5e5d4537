<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\TimeoutCancellation;
use Spindle\Tests\Conformance\Worker\Collected;
use Spindle\Tests\Conformance\Worker\PoolTestCase;
use Spindle\Tests\Conformance\Worker\Task\WorkerTasks;
use Spindle\Tests\Eventually;
use Spindle\Tests\Text;
use Spindle\Worker\RetryLaterException;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskException;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerCrashedException;

/**
 * Tests which tasks are retried, and how often.
 *
 * @phpstan-require-extends PoolTestCase
 */
trait RetriesTasks
{
    public function testATaskThatThrowsIsRetried(): void
    {
        $task = static fn(): int => TaskContext::current()->attempt < 3
            ? throw new \DomainException('not yet')
            : TaskContext::current()->attempt;

        self::assertSame(3, $this->pool(1, self::atOnce(2))->submit($task)->await());
    }

    public function testWithoutRetriesATaskHasOneAttempt(): void
    {
        $runs = $this->path('runs');
        $failed = self::failure(TaskFailedException::class, $this->pool(1)->submit(self::failing($runs)));

        self::assertSame(1, $failed->attempts);
        self::assertSame(['1'], Text::lines($runs));
    }

    public function testTheLastFailureSaysHowManyAttemptsThereWere(): void
    {
        $runs = $this->path('runs');
        $failed = self::failure(
            TaskFailedException::class,
            $this->pool(1, self::atOnce(2))->submit(self::failing($runs)),
        );

        self::assertSame(3, $failed->attempts);
        self::assertStringEndsWith('(attempt 3)', $failed->getMessage());
        self::assertSame(['1', '2', '3'], Text::lines($runs));
    }

    public function testANumberOfRetriesIsAPolicy(): void
    {
        $runs = $this->path('runs');
        $failed = self::failure(TaskFailedException::class, $this->pool(1, 1)->submit(self::failing($runs)));

        self::assertSame(2, $failed->attempts);
        self::assertSame(['1', '2'], Text::lines($runs));
    }

    public function testOnlyExceptionsOfTheListAreRetried(): void
    {
        $pool = $this->pool(1, self::atOnce(2, onThrow: [\LengthException::class, \RuntimeException::class]));

        self::assertSame(
            3,
            self::failure(
                TaskFailedException::class,
                $pool->submit(static fn() => throw new \UnexpectedValueException('is a RuntimeException')),
            )->attempts,
        );
        self::assertSame(
            1,
            self::failure(
                TaskFailedException::class,
                $pool->submit(static fn() => throw new \DomainException('is none of them')),
            )->attempts,
        );
    }

    public function testAPolicyCanExcludeExceptionsFromRetries(): void
    {
        $pool = $this->pool(1, self::atOnce(2, onThrow: false));

        self::assertSame(
            1,
            self::failure(
                TaskFailedException::class,
                $pool->submit(static fn() => throw new \DomainException('once')),
            )->attempts,
        );
    }

    public function testACrashIsRetriedInAnotherWorker(): void
    {
        $task = static fn(): int => TaskContext::current()->attempt === 1 ? exit(5) : TaskContext::current()->attempt;

        self::assertSame(2, $this->pool(1, self::atOnce(1))->submit($task)->await());
    }

    public function testAPolicyCanExcludeCrashesFromRetries(): void
    {
        $pool = $this->pool(1, self::atOnce(3, onCrash: false));

        self::assertSame(
            1,
            self::failure(WorkerCrashedException::class, $pool->submit(static fn() => exit(5)))->attempts,
        );
    }

    public function testATaskThatHasEndedTwoWorkersIsNotRetried(): void
    {
        $runs = $this->path('runs');
        $pool = $this->pool(1, self::atOnce(10));
        $crashed = self::failure(WorkerCrashedException::class, $pool->submit(static function () use ($runs): never {
            WorkerTasks::note($runs);
            exit(5);
        }));

        self::assertSame(2, $crashed->attempts);
        self::assertStringContainsString(
            '(attempt 2; a task that has ended two workers is not retried)',
            $crashed->getMessage(),
        );
        self::assertSame(['1', '2'], Text::lines($runs));
        self::assertUsable($pool);
    }

    public function testACrashInTheLastAttemptHasNoReasonBesidesTheNumberOfRetries(): void
    {
        $pool = $this->pool(1, self::atOnce(1));
        $crashed = self::failure(WorkerCrashedException::class, $pool->submit(static fn() => exit(5)));

        self::assertStringContainsString('(attempt 2);', $crashed->getMessage());
    }

    public function testATimeoutIsRetried(): void
    {
        $task = static fn(): int
            => TaskContext::current()->attempt === 1 ? WorkerTasks::hang() : TaskContext::current()->attempt;

        self::assertSame(2, $this->pool(1, self::atOnce(1), timeout: 0.2)->submit($task)->await());
    }

    public function testAPolicyCanExcludeTimeoutsFromRetries(): void
    {
        $pool = $this->pool(1, self::atOnce(3, onTimeout: false), timeout: 0.2);

        self::assertSame(
            1,
            self::failure(TaskTimeoutException::class, $pool->submit(static fn() => WorkerTasks::hang()))->attempts,
        );
    }

    public function testARetryStartsAfterItsDelay(): void
    {
        $pool = $this->pool(1, new TaskRetryPolicy(2, delay: 0.1, factor: 2.0, jitter: 0.0));
        $times = $pool->submit(static fn(): float => microtime(true));
        $start = $times->await();
        $end = $pool->submit(
            static fn(): float
                => TaskContext::current()->attempt < 3 ? throw new \DomainException('not yet') : microtime(true),
        )->await();

        self::assertGreaterThanOrEqual(0.29, $end - $start);
    }

    public function testATaskThatAsksForItRunsAgainLaterWithoutUsingAnAttempt(): void
    {
        $runs = $this->path('runs');
        $task = static function (int $i) use ($runs): int {
            file_put_contents($runs, "{$i} " . TaskContext::current()->attempt . "\n", \FILE_APPEND);
            $count = substr_count((string) file_get_contents($runs), "{$i} ");

            return $i === 1 && $count < 4 ? throw new RetryLaterException(0.0, 'HTTP 429') : $i;
        };
        $pool = $this->pool(1, self::atOnce(1));
        $results = new Collected($pool->map([0, 1, 2], $task));

        self::assertNull($results->thrown);
        self::assertSame([3, 0], [$pool->statistics()['attempts_total'], $pool->statistics()['failed_total']]);
        self::assertSame([0, 1, 2], $results->values);
        $lines = Text::lines($runs);
        sort($lines);
        self::assertSame(['0 1', '1 1', '1 1', '1 1', '1 1', '2 1'], $lines);
    }

    public function testATaskThatRunsAgainLaterWaitsForTheDelayAndCanBeCancelled(): void
    {
        $pool = $this->pool(1, new TaskRetryPolicy(1, onThrow: false));
        $runs = $this->path('runs');
        $cancellation = new DeferredCancellation();
        $later = $pool->submit(static function () use ($runs): never {
            file_put_contents($runs, "run\n", \FILE_APPEND);

            throw new RetryLaterException(3600.0);
        }, $cancellation->getCancellation());
        Eventually::holds(fn(): bool => Text::lines($this->path('runs')) === ['run'], 'the task has run');
        self::assertUsable($pool);
        self::assertFalse($later->isComplete());
        $cancellation->cancel();

        self::failure(CancelledException::class, $later);
        self::assertSame(['run'], Text::lines($runs));
    }

    public function testWithoutRetriesATaskDoesNotRunAgainLater(): void
    {
        $failed = self::failure(
            TaskFailedException::class,
            $this->pool(1)->submit(static fn(): never => throw new RetryLaterException(30.0, 'HTTP 429')),
        );

        self::assertStringContainsString('The task asked to run again in 30 s: HTTP 429', $failed->getMessage());
        self::assertInstanceOf(RetryLaterException::class, $failed->getPrevious());
        self::assertSame(30.0, $failed->getPrevious()->seconds);
    }

    public function testADelayedRetryDelaysNoOtherTask(): void
    {
        $pool = $this->pool(1, new TaskRetryPolicy(1, delay: 1e6, jitter: 0.0));
        $cancellation = new DeferredCancellation();
        $paused = $pool->submit(self::failing($this->path('runs')), $cancellation->getCancellation());
        Eventually::holds(fn(): bool => Text::lines($this->path('runs')) === ['1'], 'the first attempt is made');
        self::assertUsable($pool);
        self::assertUsable($pool);
        self::assertFalse($paused->isComplete());
        $cancellation->cancel();

        self::failure(CancelledException::class, $paused);
        self::assertSame(['1'], Text::lines($this->path('runs')));
    }

    public function testALoopKeepsItsOrderAndKeysWhenTasksAreRetried(): void
    {
        $task = static fn(int $i): array => $i % 3 === 0 && TaskContext::current()->attempt === 1
            ? throw new \DomainException('not yet')
            : [$i, TaskContext::current()->attempt];
        $results = new Collected($this->pool(retries: self::atOnce(1))->map(range(0, 99), $task));

        self::assertNull($results->thrown);
        self::assertSame(range(0, 99), $results->keys);
        self::assertSame(
            array_map(static fn(int $i): array => [$i, $i % 3 === 0 ? 2 : 1], range(0, 99)),
            $results->values,
        );
    }

    public function testAnUnserializableResultIsNotRetried(): void
    {
        $runs = $this->path('runs');
        self::failure(
            UnserializableException::class,
            $this->pool(1, self::atOnce(3))->submit(static function () use ($runs): \Closure {
                WorkerTasks::note($runs);

                return abs(...);
            }),
        );

        self::assertSame(['1'], Text::lines($runs));
    }

    public function testAGeneratorThatHasYieldedItemsIsNotRetried(): void
    {
        $runs = $this->path('runs');
        $pool = $this->pool(1, self::atOnce(3));
        $items = new Collected(self::items($pool, static function () use ($runs): \Generator {
            WorkerTasks::note($runs);
            yield 1;
            throw new \DomainException('torn');
        }));

        self::assertSame([1], $items->values);
        self::assertInstanceOf(TaskException::class, $items->thrown);
        self::assertSame(['1'], Text::lines($runs));
    }

    public function testGeneratorsOfLaterTasksDoNotOccupyAllWorkersForEver(): void
    {
        $pool = $this->pool(2, new TaskRetryPolicy(1, delay: 0.1, jitter: 0.0));
        $first = [];
        foreach ($pool->map(range(0, 5), static function (int $i): \Generator {
            if ($i === 0 && TaskContext::current()->attempt === 1) {
                throw new \DomainException('not yet');
            }

            return (static fn(): \Generator => yield from new \InfiniteIterator(new \ArrayIterator([$i])))();
        }) as $key => $items) {
            $first[$key] = $items->current();
            unset($items);
        }

        self::assertSame(range(0, 5), $first);
        Eventually::holds(static fn(): bool => $pool->statistics()['workers'] <= 2, 'the pool has its size again');
    }

    public function testARetryDoesNotWaitForAnEarlierRetryOfALaterGenerator(): void
    {
        $pool = $this->pool(2, new TaskRetryPolicy(1, delay: 0.1, jitter: 0.0));
        $failed = $this->path('failed');
        $counts = [];
        foreach ($pool->map(range(0, 4), static function (int $i) use ($failed): \Generator {
            if ($i < 2 && TaskContext::current()->attempt === 1) {
                $i === 1
                    ? touch($failed)
                    : Eventually::holdsByItself(static fn(): bool => is_file($failed), 'the later task fails first');
                throw new \DomainException('not yet');
            }

            return (static fn(): \Generator => yield from range(1, 1000))();
        }) as $items) {
            $counts[] = iterator_count($items);
            unset($items);
        }

        self::assertSame(array_fill(0, 5, 1000), $counts);
    }

    public function testARetryDoesNotWaitForTheDelayOfALaterTask(): void
    {
        $pool = $this->pool(2, new TaskRetryPolicy(2, delay: 0.001, factor: 100_000.0, maxDelay: 100.0, jitter: 0.0));
        [$begun, $delayed] = [$this->path('begun'), $this->path('delayed')];
        $input = static function () use ($delayed): \Generator {
            yield from [0, 1];
            Eventually::holds(static fn(): bool => is_file($delayed), 'task 1 fails for the second time');
            yield from [2, 3];
        };
        $results = $pool->map($input(), static function (int $i) use ($begun, $delayed): int|\Generator {
            $attempt = TaskContext::current()->attempt;
            if ($i === 1 && $attempt === 2) {
                touch($delayed); // the third attempt begins after 100 seconds
            }
            if ($i === 1 || ($i === 0 && $attempt === 1)) {
                if ($i === 0) {
                    Eventually::holdsByItself(static fn(): bool => is_file($begun), 'task 2 has a worker');
                }
                throw new \DomainException('not yet');
            }
            touch($begun);

            return $i === 0 ? 0 : (static fn(): \Generator => yield from range(1, 1000))();
        }, new TimeoutCancellation(60.0));

        self::assertSame(0, $results->current());
    }

    public function testARetryDoesNotWaitForALaterGeneratorOfItsBatch(): void
    {
        $pool = $this->pool(1, new TaskRetryPolicy(2, delay: 0.01));
        $results = [];
        foreach ($pool->map(range(0, 29), static function (int $i): int|\Generator {
            if ($i === 15 && TaskContext::current()->attempt < 3) { // the batches have several tasks by then
                throw new \DomainException('not yet');
            }

            return $i === 16 ? (static fn(): \Generator => yield from range(1, 1000))() : $i;
        }) as $key => $result) {
            $results[$key] = $result instanceof \Generator ? iterator_count($result) : $result;
            unset($result);
        }

        self::assertSame(array_replace(range(0, 29), [16 => 1000]), $results);
    }

    public function testARetryDoesNotWaitForOtherTasksWhenALaterGeneratorHasAWorker(): void
    {
        $pool = $this->pool(3, self::atOnce(1));
        $gate = $this->gate();
        $long = $pool->submit(static fn(): string => $gate->pass());
        $unread = $pool->submit(static fn(): \Generator => yield from new \InfiniteIterator(new \ArrayIterator([1])));
        $items = $unread->await();
        $gate->awaitTasks(1);
        $counts = $workers = [];
        foreach ($pool->map([0, 1], static function (int $i): \Generator {
            if ($i === 0 && TaskContext::current()->attempt === 1) {
                throw new \DomainException('not yet');
            }

            return (static fn(): \Generator => yield from range(1, 1000))();
        }) as $result) {
            $counts[] = iterator_count($result);
            $workers[] = $pool->statistics()['workers'];
            unset($result);
        }

        self::assertSame([1000, 1000], $counts);
        self::assertLessThanOrEqual(4, max($workers));
        $gate->open();
        self::assertSame('task', $long->await());
        unset($items, $unread);
        Eventually::holds(static fn(): bool => $pool->statistics()['workers'] <= 3, 'the pool has its size again');
    }

    /** @param bool|list<class-string<\Throwable>> $onThrow */
    private static function atOnce(
        int $retries,
        bool $onCrash = true,
        bool $onTimeout = true,
        bool|array $onThrow = true,
    ): TaskRetryPolicy {
        return new TaskRetryPolicy($retries, $onCrash, $onTimeout, $onThrow, delay: 0.0);
    }

    /** @return \Closure(): never */
    private static function failing(string $runs): \Closure
    {
        return static function () use ($runs): never {
            WorkerTasks::note($runs);
            throw new \DomainException('always');
        };
    }
}
