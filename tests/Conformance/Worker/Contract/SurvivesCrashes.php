<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\Future;
use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Worker\Collected;
use Spindle\Tests\Conformance\Worker\PoolTestCase;
use Spindle\Tests\Conformance\Worker\Task\ExhaustingObject;
use Spindle\Tests\Conformance\Worker\Task\Gate;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\WorkerTasks;
use Spindle\Tests\Eventually;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\WorkerCrashedException;
use Spindle\Worker\WorkerPool;

/**
 * Tests tasks that end their worker.
 *
 * @phpstan-require-extends PoolTestCase
 */
trait SurvivesCrashes
{
    public function testACrashSaysHowTheWorkerEnded(): void
    {
        $pool = $this->pool(1, memoryLimit: '32M', onOutput: static function (): void {});
        foreach (self::crashes() as $name => [$task, $exitCode, $signal, $message]) {
            $crashed = self::failure(WorkerCrashedException::class, $pool->submit($task));
            if (!$this->hasAProcessForEachWorker()) {
                $message = str_replace("exit({$exitCode})", 'exit()', $message);
                $exitCode = null;
            }

            self::assertSame([$exitCode, $signal], [$crashed->exitCode, $crashed->signal], $name);
            self::assertStringContainsString($message, $crashed->getMessage());
            self::assertSame([1, null], [$crashed->attempts, $crashed->key]);
            self::assertUsable($pool);
        }
    }

    public function testAFatalErrorIsReportedWithFileAndLine(): void
    {
        $pool = $this->pool(1, memoryLimit: '32M', onOutput: static function (): void {});
        $crashed = self::failure(WorkerCrashedException::class, $pool->submit(WorkerTasks::exhaust(...)));

        self::assertNotNull($crashed->error);
        self::assertStringContainsString('Allowed memory size of 33554432 bytes exhausted', $crashed->error);
        self::assertStringContainsString('/WorkerTasks.php:', $crashed->error);
        self::assertStringContainsString('raise WorkerPoolOptions(memoryLimit:)', $crashed->getMessage());
        self::assertGreaterThan(20 << 20, $crashed->memoryPeak);
    }

    public function testAFatalErrorInAClosureNamesTheFileOfTheClosure(): void
    {
        $pool = $this->pool(1, memoryLimit: '32M', onOutput: static function (): void {});
        $task = static fn(): int => \strlen(str_repeat('x', 1 << 26));
        $crashed = self::failure(WorkerCrashedException::class, $pool->submit($task));

        self::assertStringEndsWith(__FILE__ . ':' . (__LINE__ - 3), (string) $crashed->error);
        self::assertSame(1, substr_count($crashed->getMessage(), 'Allowed memory size'), $crashed->getMessage());
    }

    /** @return iterable<string, array{\Closure(): mixed}> */
    public static function dataBeyondTheMemoryOfAWorker(): iterable
    {
        yield 'many bytes' => [static fn(): string => str_repeat('x', 20 << 20)];
        yield 'few bytes that need much memory' => [static fn(): array => array_fill(0, 100_000, ['a' => 1])];
    }

    /** @param \Closure(): mixed $create */
    #[DataProvider('dataBeyondTheMemoryOfAWorker')]
    public function testATaskWhoseDataNeedsMoreMemoryThanTheLimitIsSaidNotToHaveRun(\Closure $create): void
    {
        $data = $create();
        $pool = $this->pool(1, memoryLimit: '32M', onOutput: static function (): void {});
        $size = \strlen(serialize($data));
        $outcomes = iterator_to_array($pool->mapOutcomes([1, $data], static fn(mixed $data): int => 1));
        $submitted = self::failure(WorkerCrashedException::class, $pool->submit(static fn(): mixed => $data));

        self::assertNull($outcomes[0]->failure);
        self::assertInstanceOf(WorkerCrashedException::class, $outcomes[1]->failure);
        foreach ([$outcomes[1]->failure, $submitted] as $crashed) {
            $pattern = "/ did not run: its worker ran out of memory for the task's data of (\d+) bytes/";
            self::assertSame(1, preg_match($pattern, $crashed->getMessage(), $match), $crashed->getMessage());
            self::assertEqualsWithDelta($size, (int) $match[1], 2000);
            self::assertStringContainsString('raise WorkerPoolOptions(memoryLimit:)', $crashed->getMessage());
            self::assertStringStartsWith('Allowed memory size of 33554432 bytes exhausted', (string) $crashed->error);
        }
        self::assertUsable($pool);
    }

    public function testMemoryThatEarlierTasksHaveKeptIsNotBlamedOnTheDataOfATask(): void
    {
        $data = array_fill(0, 35_000, ['a' => 1]);
        $pool = $this->pool(1, memoryLimit: '32M', onOutput: static function (): void {});
        $count = static fn(array $data): int => \count($data);
        self::assertSame([35_000], iterator_to_array($pool->map([$data], $count)));
        $pool->submit(WorkerTasks::keepNearlyAll(...))->await();
        $message = (string) [...$pool->mapOutcomes([$data], $count)][0]->failure?->getMessage();

        self::assertStringContainsString(' died of a fatal error: Allowed memory size of 33554432 bytes', $message);
        self::assertMatchesRegularExpression('/; earlier tasks had kept 2\d\.\d MiB in the worker; /', $message);
        self::assertStringContainsString('set WorkerPoolOptions(maxMemoryGrowthBytes:)', $message);
        self::assertStringContainsString('or raise WorkerPoolOptions(memoryLimit:)', $message);
        self::assertUsable($pool);
    }

    public function testMemoryThatTheClassOfAnArgumentAllocatesIsNotBlamedOnTheData(): void
    {
        $pool = $this->pool(1, memoryLimit: '32M', onOutput: static function (): void {});
        $outcomes = [...$pool->mapOutcomes([new ExhaustingObject()], static fn(object $argument): int => 1)];
        $message = (string) $outcomes[0]->failure?->getMessage();

        self::assertStringContainsString(' died of a fatal error: Allowed memory size of 33554432 bytes', $message);
        self::assertStringContainsString('/WorkerTasks.php:', $message);
        self::assertStringContainsString('; use less memory, or raise WorkerPoolOptions(memoryLimit:)', $message);
        self::assertUsable($pool);
    }

    public function testWithoutAFatalErrorNoneIsReported(): void
    {
        $pool = $this->pool(1);

        self::assertNull(self::failure(WorkerCrashedException::class, $pool->submit(static fn() => exit(3)))->error);
        self::assertNull(
            self::failure(WorkerCrashedException::class, $pool->submit(static fn() => WorkerTasks::dieOf(9)))->error,
        );
    }

    public function testTheEndOfStandardErrorIsKept(): void
    {
        $this->needsAProcessForEachWorker('they have one standard error');
        $pool = $this->pool(1, onOutput: static function (): void {});
        $crashed = self::failure(WorkerCrashedException::class, $pool->submit(static function (): never {
            file_put_contents('php://stderr', str_repeat('x', 20_000) . 'the last words');
            exit(3);
        }));

        self::assertStringEndsWith('the last words', $crashed->stderr);
        self::assertSame(8192, \strlen($crashed->stderr));
        self::assertStringContainsString('the last words', $crashed->getMessage());
    }

    public function testAMissingInterfaceIsAFailureAndNoCrash(): void
    {
        $pool = $this->pool(1);
        $failed = self::failure(
            TaskFailedException::class,
            $pool->submit(static fn(): mixed => eval('final class OfNothing implements \NotThereAtAll {}')),
        );

        self::assertStringContainsString('NotThereAtAll', $failed->thrown->message);
    }

    /** @return iterable<string, array{\Closure(): mixed}> */
    public static function waysToDie(): iterable
    {
        yield 'exit' => [static fn() => exit(1)];
        yield 'KILL' => [static fn() => WorkerTasks::dieOf(9)];
        yield 'memory' => [static fn(): int => WorkerTasks::exhaust()];
    }

    /** @param \Closure(): mixed $death */
    #[DataProvider('waysToDie')]
    public function testOnlyTheTaskThatRanFails(\Closure $death): void
    {
        if ($this->dataName() === 'KILL') {
            $this->needsAProcessForEachWorker('a signal ends all of them');
        }
        $pool = $this->pool(memoryLimit: '32M', onOutput: static function (): void {});
        $futures = [];
        for ($i = 0; $i < 60; ++$i) {
            $task = match ($i) {
                29 => static function (): int {
                    usleep(2_000); // long enough for its result to be sent before the next task begins

                    return 29;
                },
                30 => $death,
                default => new Number($i),
            };
            $futures[] = $pool->submit($task)->ignore();
        }
        foreach ($futures as $i => $future) {
            if ($i === 30) {
                self::failure(WorkerCrashedException::class, $future);
            } else {
                self::assertSame($i, $future->await());
            }
        }
        self::assertUsable($pool);
    }

    /** @return iterable<string, array{\Closure(): mixed}> */
    public static function waysToDieThatPhpNotices(): iterable
    {
        foreach (self::waysToDie() as $name => $way) {
            if ($name !== 'KILL') { // SIGKILL loses results of tiny tasks that were not sent yet
                yield $name => $way;
            }
        }
    }

    /** @param \Closure(): mixed $death */
    #[DataProvider('waysToDie')]
    public function testACrashAfterAGeneratorLeavesNothingWaiting(\Closure $death): void
    {
        $pool = $this->pool(1, memoryLimit: '32M', onOutput: static function (): void {});
        $task = static fn(int $i): mixed => $i === 2001 ? $death() : (static function () use ($i): \Generator {
            yield $i;
        })();
        $taken = 0;
        try {
            foreach ($pool->map(range(0, 3000), $task) as $items) {
                self::assertInstanceOf(\Generator::class, $items);
                $taken += \count(iterator_to_array($items, false));
            }
            self::fail('Nothing was thrown');
        } catch (WorkerCrashedException) {
            self::assertLessThanOrEqual(2001, $taken);
        }
        self::assertUsable($pool);
        $pool->close();
    }

    /** @param \Closure(): mixed $death */
    #[DataProvider('waysToDieThatPhpNotices')]
    public function testALoopEndsWithTheCrashOfItsTaskAfterAllResultsBeforeIt(\Closure $death): void
    {
        $pool = $this->pool(memoryLimit: '32M', onOutput: static function (): void {});
        $results = new Collected($pool->map(range(0, 400), static fn(int $i): mixed => $i === 300 ? $death() : $i));

        self::assertInstanceOf(WorkerCrashedException::class, $results->thrown);
        self::assertSame(300, $results->thrown->key);
        self::assertSame(range(0, 299), $results->values);
        self::assertUsable($pool);
    }

    public function testACrashNamesItsKey(): void
    {
        $pool = $this->pool();
        $results = new Collected($pool->map(['a' => 0, 'b' => 3], static fn(int $i): int => $i === 0 ? 0 : exit($i)));

        self::assertSame(['a'], $results->keys);
        self::assertInstanceOf(WorkerCrashedException::class, $results->thrown);
        self::assertSame('b', $results->thrown->key);
        $code = $this->hasAProcessForEachWorker() ? '3' : '';
        self::assertStringStartsWith("The task for \"b\" called exit({$code})", $results->thrown->getMessage());
    }

    public function testAWorkerThatCrashedIsReplaced(): void
    {
        $pool = $this->pool(1);
        $before = $pool->submit(WorkerTasks::worker(...))->await();
        self::failure(WorkerCrashedException::class, $pool->submit(static fn() => exit(0)));

        self::assertNotSame($before, $pool->submit(WorkerTasks::worker(...))->await());
    }

    public function testACrashOfAGeneratorComesAfterItsItems(): void
    {
        $pool = $this->pool(1);
        $items = new Collected(self::items($pool, static function (): \Generator {
            yield 1;
            yield 2;
            exit(3);
        }));

        self::assertSame([1, 2], $items->values);
        self::assertInstanceOf(WorkerCrashedException::class, $items->thrown);
        self::assertSame($this->hasAProcessForEachWorker() ? 3 : null, $items->thrown->exitCode);
        self::assertUsable($pool);
    }

    public function testAReaderThatWaitsForAnItemFailsAtOnceWhenTheWorkerEnds(): void
    {
        $gate = $this->gate();
        $pool = $this->pool(1, onOutput: static function (): void {});
        $taken = [];
        $reader = $this->readerOf($pool, $gate, $taken);
        $start = hrtime(true);
        self::assertIsInt($taken[0]);
        posix_kill($taken[0], \SIGKILL);
        $crashed = self::failure(WorkerCrashedException::class, $reader);

        self::assertSame(9, $crashed->signal);
        self::assertLessThan(2.0, (hrtime(true) - $start) / 1e9, 'seconds');
        self::assertUsable($pool);
        $pool->close();
    }

    public function testAReaderThatWaitsForAnItemFailsAtOnceWhenThePoolIsKilled(): void
    {
        $gate = $this->gate();
        $pool = $this->pool(1);
        $taken = [];
        $reader = $this->readerOf($pool, $gate, $taken);
        $start = hrtime(true);
        $pool->kill();
        self::failure(ExecutorClosedException::class, $reader);

        self::assertLessThan(2.0, (hrtime(true) - $start) / 1e9, 'seconds');
        self::assertCount(1, $taken);
    }

    public function testStatisticsCountWorkersAndTasks(): void
    {
        $gate = $this->gate();
        $pool = $this->pool(1);
        $futures = [$pool->submit(static fn(): string => $gate->pass())];
        $gate->awaitTasks(1);
        $futures[] = $pool->submit(static fn() => exit(7));
        $futures[] = $pool->submit(static fn() => throw new \DomainException('torn'));
        self::assertSame(
            [
                'in_use' => 1,
                'max' => 1,
                'workers' => 1,
                'waiting' => 2,
                'attempts_total' => 0,
                'failed_total' => 0,
                'crashed_total' => 0,
            ],
            $pool->statistics(),
        );
        $gate->open();
        $futures[0]->await();
        self::failure(WorkerCrashedException::class, $futures[1]);
        self::failure(TaskFailedException::class, $futures[2]);
        self::assertSame([1, 2, 3], iterator_to_array($pool->map([1, 2, 3], abs(...))));
        $figures = $pool->statistics();

        self::assertSame(
            [0, 6, 2, 1],
            [$figures['waiting'], $figures['attempts_total'], $figures['failed_total'], $figures['crashed_total']],
        );
        $pool->close();
        self::assertSame([0, 0], [$pool->statistics()['in_use'], $pool->statistics()['workers']]);
    }

    public function testManyCrashesLeaveThePoolUsable(): void
    {
        $pool = $this->pool();
        $futures = [];
        for ($i = 0; $i < 10; ++$i) {
            $futures[] = $pool->submit(static fn() => exit(7));
        }
        foreach ($futures as $future) {
            self::assertSame(
                $this->hasAProcessForEachWorker() ? 7 : null,
                self::failure(WorkerCrashedException::class, $future)->exitCode,
            );
        }
        self::assertUsable($pool);
    }

    /**
     * @return iterable<string, array{\Closure(): mixed, int|null, int|null, string}> task, exit code, signal, part of
     *         the message
     */
    private static function crashes(): iterable
    {
        yield 'exit(0)' => [static fn() => exit(0), 0, null, 'called exit(0)'];
        yield 'exit(3)' => [static fn() => exit(3), 3, null, 'called exit(3)'];
        yield 'exit with a text' => [static fn() => exit('bye'), 0, null, 'called exit(0)'];
        yield 'memory' => [
            static fn(): int => WorkerTasks::exhaust(),
            255,
            null,
            'Allowed memory size of 33554432 bytes exhausted',
        ];
        yield 'code that does not compile' => [
            static fn(): mixed => eval('function f() { break; }'),
            255,
            null,
            "'break' not in the 'loop' or 'switch' context",
        ];
        yield 'E_USER_ERROR' => [
            static fn(): bool => trigger_error('no configuration', \E_USER_ERROR),
            255,
            null,
            'died of a fatal error: no configuration in ' . __FILE__ . ':' . (__LINE__ - 3),
        ];
        yield 'KILL' => [static fn() => WorkerTasks::dieOf(9), null, 9, 'by signal 9 (KILL'];
        yield 'SEGV' => [
            static fn() => WorkerTasks::dieOf(11),
            null,
            11,
            'by signal 11 (SEGV): PHP crashed, for example in an endless recursion; ',
        ];
    }

    /**
     * Reads a generator, and waits for its second item, which does not arrive.
     *
     * @param list<mixed> $taken receives its first item, the id of the worker
     *
     * @return Future<null>
     */
    private function readerOf(WorkerPool $pool, Gate $gate, array &$taken): Future
    {
        $items = self::items($pool, static function () use ($gate): \Generator {
            yield WorkerTasks::worker();
            yield $gate->pass();
        });
        $reader = Async::run(static function () use ($items, &$taken): null {
            foreach ($items as $item) {
                $taken[] = $item;
            }

            return null;
        });
        Eventually::holds(static function () use ($gate, &$taken): bool {
            return $taken !== [] && $gate->names() !== [];
        }, 'it waits');

        return $reader;
    }
}
