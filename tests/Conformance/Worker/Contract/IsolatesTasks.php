<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Spindle\Tests\Conformance\Worker\Collected;
use Spindle\Tests\Conformance\Worker\PoolTestCase;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\ThrowingDestructor;
use Spindle\Tests\Conformance\Worker\Task\WorkerTasks;
use Spindle\Tests\Eventually;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\WorkerCrashedException;
use Spindle\Worker\WorkerPool;

use function Amp\Future\await;

/**
 * Tests that a task does not affect others, even in the same worker and batch.
 *
 * @phpstan-require-extends PoolTestCase
 */
trait IsolatesTasks
{
    public function testACancelledTaskThatHasToBeKilledTakesNoTinyOnesBeforeItWithIt(): void
    {
        $this->needsCancellationInTasks();
        $gate = $this->gate();
        $pool = $this->poolThatKnowsTinyTasks(gracePeriod: 0.2);
        $cancellation = new DeferredCancellation();
        $tiny = self::submitTiny($pool, 50);
        $stubborn = $pool->submit(static function () use ($gate): never {
            TaskContext::current()->cancellation();
            $gate->say('stubborn');
            WorkerTasks::hang();
        }, $cancellation->getCancellation());
        $gate->awaitTasks(1);
        $cancellation->cancel();

        self::failure(CancelledException::class, $stubborn);
        self::assertSame(array_fill(0, 50, 42), await($tiny));
    }

    public function testAGeneratorThatThrowsAtOnceWaitsForNoTaskBehindIt(): void
    {
        $gate = $this->gate();
        $pool = $this->poolThatKnowsTinyTasks();
        $tiny = self::submitTiny($pool, 50);
        $items = $pool->submit(static function (): \Generator {
            throw new \DomainException('at once');
            yield 1; // @phpstan-ignore deadCode.unreachable (it makes it a generator)
        });
        $long = $pool->submit(static fn(): string => $gate->pass());
        $generator = $items->await();

        self::assertInstanceOf(TaskFailedException::class, (new Collected($generator))->thrown);
        self::assertFalse($long->isComplete());
        $gate->open();
        self::assertSame('task', $long->await());
        await($tiny);
    }

    public function testAThrowingDestructorEndsNoWorker(): void
    {
        $pool = $this->pool(1, onOutput: static function (): void {});
        $task = static fn(): array => [WorkerTasks::worker(), new ThrowingDestructor()];
        $workers = [];
        for ($i = 0; $i < 3; ++$i) {
            [$workers[]] = $pool->submit($task)->await();
        }

        self::assertCount(1, array_unique($workers));
    }

    public function testAFailedGeneratorWhoseLastItemThrowsInItsDestructorEndsNoWorker(): void
    {
        $pool = $this->pool(1, onOutput: static function (): void {});
        $task = static function (): \Generator {
            yield WorkerTasks::worker();
            yield new ThrowingDestructor();

            throw new \DomainException('of the task');
        };
        $workers = [];
        for ($i = 0; $i < 3; ++$i) {
            $collected = new Collected($pool->submit($task)->await());
            $workers[] = $collected->values[0];

            self::assertInstanceOf(TaskFailedException::class, $collected->thrown);
            self::assertStringContainsString('of the task', $collected->thrown->getMessage());
        }

        self::assertSame(array_fill(0, 3, $workers[0]), $workers);
    }

    public function testAForkBeforeTheFirstItemSendsNothingToThePool(): void
    {
        $this->needsAProcessForEachWorker('a fork is of one thread only');
        if (!\function_exists('pcntl_fork')) {
            self::markTestSkipped('There is no ext-pcntl');
        }
        $pool = $this->poolThatKnowsTinyTasks();
        for ($i = 0; $i < 3; ++$i) {
            $tiny = self::submitTiny($pool, 20);
            $items = self::items($pool, static function (): \Generator {
                $child = pcntl_fork();

                return (static function () use ($child): \Generator {
                    usleep(5_000);
                    yield 'a' => 1;
                    yield 'b' => 2;
                    if ($child > 0) {
                        pcntl_waitpid($child, $status);
                    }
                })();
            });

            self::assertSame(['a' => 1, 'b' => 2], iterator_to_array($items));
            self::assertSame(array_fill(0, 20, 42), await($tiny));
        }
    }

    public function testAForkOfATaskThatThrowsEndsAsAnyPhpProcess(): void
    {
        $this->needsAProcessForEachWorker('a fork is of one thread only');
        if (!\function_exists('pcntl_fork')) {
            self::markTestSkipped('There is no ext-pcntl');
        }
        $printed = '';
        $pool = $this->pool(1, onOutput: static function (string $bytes) use (&$printed): void {
            $printed .= $bytes;
        });
        $task = static function (): int {
            $child = pcntl_fork();
            if ($child === 0) {
                throw new \DomainException('only in the fork');
            }
            pcntl_waitpid($child, $status);

            return \is_int($status) && pcntl_wifexited($status) ? (int) pcntl_wexitstatus($status) : -1;
        };

        self::assertSame(255, $pool->submit($task)->await());
        Eventually::holds(
            static function () use (&$printed): bool {
                return str_contains($printed, 'DomainException: only in the fork');
            },
            'PHP reports the exception of the fork',
        );
        self::assertSame(5, $pool->submit(static fn(): int => 5)->await());
    }

    public function testASignalIsToldAsTheOneThatItWas(): void
    {
        $this->needsAProcessForEachWorker('a signal ends all of them');
        $pool = $this->pool(1);
        $crash = self::failure(
            WorkerCrashedException::class,
            $pool->submit(static fn() => WorkerTasks::dieOf(\SIGTERM)),
        );

        self::assertSame(\SIGTERM, $crash->signal);
    }

    public function testAnAlarmOfATaskDoesNotEndLaterTasks(): void
    {
        $this->needsAProcessForEachWorker('threads have one alarm');
        if (!\function_exists('pcntl_alarm')) {
            self::markTestSkipped('There is no ext-pcntl');
        }
        $pool = $this->pool(1);
        $secondsLeft = static fn(): int => pcntl_alarm(600);

        self::assertSame(0, $pool->submit($secondsLeft)->await());
        self::assertSame(0, $pool->submit($secondsLeft)->await());
        $alarmOfLastTasks = static function (int $number): int { // short tasks first, so that a batch has many tasks
            if ($number <= 5_000) {
                return 0;
            }
            usleep(1_000);

            return pcntl_alarm(600);
        };
        self::assertSame(0, array_sum(iterator_to_array($pool->map(range(1, 5_030), $alarmOfLastTasks))));

        $pool = $this->pool(1, initialize: static fn(): int => pcntl_alarm(600));
        self::assertSame(0, $pool->submit($secondsLeft)->await());
    }

    public function testAWorkerDoesNotGrowByWhatItIsGivenAndWhatItReturns(): void
    {
        $pool = $this->pool(1, maxMemoryGrowthBytes: 4 << 20);
        $workers = [];
        for ($i = 0; $i < 4; ++$i) {
            foreach ($pool->map(
                [str_repeat('x', 8 << 20)],
                static fn(string $large): array => [WorkerTasks::worker(), $large],
            ) as [$worker, $large]) {
                $workers[] = $worker;
                self::assertSame(8 << 20, \strlen($large));
            }
        }

        self::assertCount(1, array_unique($workers));
    }

    private function poolThatKnowsTinyTasks(float $gracePeriod = 1.0): WorkerPool
    {
        $pool = $this->pool(1, gracePeriod: $gracePeriod);
        for ($i = 0; $i < 10; ++$i) {
            await(self::submitTiny($pool, 1000));
        }

        return $pool;
    }

    /** @return list<\Amp\Future<int>> */
    private static function submitTiny(WorkerPool $pool, int $count): array
    {
        $futures = [];
        for ($i = 0; $i < $count; ++$i) {
            $futures[] = $pool->submit([Number::class, 'answer']);
        }

        return $futures;
    }
}
