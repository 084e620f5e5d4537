<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\Future;
use Revolt\EventLoop;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Worker\Collected;
use Spindle\Tests\Conformance\Worker\PoolTestCase;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\WorkerTasks;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;
use Spindle\Worker\ExecutorClosedException;

/**
 * Tests how a pool ends.
 *
 * @phpstan-require-extends PoolTestCase
 */
trait Closes
{
    public function testALoopThatIsBegunAfterTheEndIsToldSo(): void
    {
        $pool = $this->pool();
        $loops = [$pool->map([1], abs(...)), $pool->mapUnordered([1], abs(...))];
        $pool->close();
        foreach ($loops as $loop) {
            self::thrown(ExecutorClosedException::class, static fn() => iterator_to_array($loop));
        }
    }

    public function testCloseReturnsWhenAllTasksHaveTheirOutcomes(): void
    {
        $pool = $this->pool();
        $pid = $pool->submit(WorkerTasks::worker(...))->await();
        $futures = [];
        for ($i = 0; $i < 50; ++$i) {
            $futures[] = $pool->submit(new Number($i));
        }
        $pool->close();
        foreach ($futures as $i => $future) {
            self::assertTrue($future->isComplete());
            self::assertSame($i, $future->await());
        }
        Eventually::holdsByItself(static fn(): bool => !Processes::isAlive($pid), 'its process has ended');
    }

    public function testALoopWhoseArrayWasReadCompletelyDoesNotFailWhenThePoolIsClosed(): void
    {
        foreach (['map', 'mapUnordered'] as $method) {
            $pool = $this->pool(1);
            $pool->submit(Number::answer(...))->await();
            $results = [];
            $loop = $method === 'map' ? $pool->map([1, 2], abs(...)) : $pool->mapUnordered([1, 2], abs(...));
            foreach ($loop as $result) {
                $results[] = $result;
                $pool->close(); // the second value was read before the first result arrived
            }

            self::assertSame([1, 2], $results);
        }
    }

    public function testStartingWorkersDoNotKeepAKilledPoolWaiting(): void
    {
        $took = \INF;
        for ($i = 0; $i < 5 && $took >= 0.45; ++$i) {
            $pool = $this->pool(8);
            $pool->submit(Number::answer(...))->await();
            iterator_to_array($pool->map(range(1, 9), Number::double(...)));
            $start = hrtime(true);
            $pool->kill();
            $took = min($took, (hrtime(true) - $start) / 1e9);
        }

        self::assertLessThan(0.45, $took);
    }

    public function testAClosedPoolAcceptsNoTasks(): void
    {
        foreach (['close', 'kill'] as $end) {
            $pool = $this->pool();
            self::assertUsable($pool);
            $end === 'close' ? $pool->close() : $pool->kill();
            self::thrown(ExecutorClosedException::class, static fn() => $pool->submit(Number::answer(...)));
            self::thrown(ExecutorClosedException::class, static fn() => $pool->map([1], Number::double(...)));
            self::thrown(ExecutorClosedException::class, static fn() => $pool->mapUnordered([1], Number::double(...)));
        }
    }

    public function testAPoolMayBeEndedAgain(): void
    {
        foreach ([['close', 'close'], ['kill', 'kill'], ['close', 'kill'], ['kill', 'close']] as [$first, $second]) {
            $pool = $this->pool(1);
            self::assertUsable($pool);
            $first === 'close' ? $pool->close() : $pool->kill();
            $second === 'close' ? $pool->close() : $pool->kill();
            $idle = $this->pool(1); // a pool without any worker
            $second === 'close' ? $idle->close() : $idle->kill();
        }
    }

    public function testALoopOfAPoolThatIsClosedGetsTheResultsOfWhatWasRead(): void
    {
        $pool = $this->pool();
        $input = static function (): \Generator {
            for ($i = 0; true; ++$i) {
                yield $i;
            }
        };
        $closing = null;
        $values = [];
        $thrown = self::thrown(
            ExecutorClosedException::class,
            static function () use ($pool, $input, &$closing, &$values): void {
                foreach ($pool->map($input(), Number::double(...)) as $i => $value) {
                    $values[$i] = $value;
                    $closing ??= Async::run($pool->close(...));
                }
            },
        );
        $closing?->await();

        self::assertStringContainsString('before the end of the input was reached', $thrown->getMessage());
        self::assertSame(range(0, 2 * \count($values) - 2, 2), $values);
    }

    public function testKillFailsTasksWithoutOutcomes(): void
    {
        $gate = $this->gate();
        $pool = $this->pool(1);
        $running = $pool->submit(static fn(): string => $gate->pass('running'));
        $waiting = $pool->submit(static fn(): string => $gate->pass('waiting'));
        $loop = Async::run(static fn(): Collected => new Collected($pool->map(['a'], $gate->pass(...))));
        $gate->awaitTasks(1);
        $pool->kill();

        self::failure(ExecutorClosedException::class, $running);
        self::failure(ExecutorClosedException::class, $waiting);
        self::assertInstanceOf(ExecutorClosedException::class, $loop->await()->thrown);
        self::assertSame(['running'], $gate->names());
    }

    public function testKillEndsTheWorkersAtOnce(): void
    {
        $pool = $this->pool(1);
        $pid = $pool->submit(WorkerTasks::worker(...))->await();
        $pool->submit(static fn() => WorkerTasks::hang())->ignore();
        $pool->kill();

        Eventually::holdsByItself(static fn(): bool => !Processes::isAlive($pid), 'it is gone');
    }

    public function testAPoolThatIsDroppedCompletesItsFutures(): void
    {
        $pool = $this->pool();
        $futures = [];
        for ($i = 0; $i < 50; ++$i) {
            $futures[] = $pool->submit(new Number($i));
        }
        unset($pool);
        $this->dropExecutors();

        self::assertSame(range(0, 49), array_map(static fn(Future $future): int => $future->await(), $futures));
        EventLoop::run(); // lets its workers stop
    }

    public function testADroppedPoolEndsWithTheOutcomeOfItsLastTask(): void
    {
        $future = $this->pool(1)->submit(WorkerTasks::worker(...));
        $this->dropExecutors();
        $pid = $future->await();

        // The event loop no longer runs.
        Eventually::holdsByItself(static fn(): bool => !Processes::isAlive($pid), 'its worker is gone');
    }

    public function testAGeneratorOutlivesItsPool(): void
    {
        $items = self::items($this->pool(1), static fn(): \Generator => yield from range(1, 500));
        $this->dropExecutors();

        self::assertSame(range(1, 500), iterator_to_array($items));
        EventLoop::run();
    }

    public function testALoopHoldsItsPool(): void
    {
        $results = $this->pool()->map(range(1, 500), Number::double(...));
        $this->dropExecutors();

        self::assertSame(range(2, 1000, 2), iterator_to_array($results, false));
    }

    public function testAnIdlePoolDoesNotKeepTheLoopAlive(): void
    {
        $pool = $this->pool();
        EventLoop::run();
        self::assertUsable($pool);
        EventLoop::run();
        self::assertUsable($pool);
    }

    public function testALoopOfEventsGoesOnUntilAllTasksHaveTheirOutcomes(): void
    {
        $pool = $this->pool();
        $futures = [];
        for ($i = 0; $i < 10; ++$i) {
            $futures[] = $pool->submit(new Number($i));
        }
        EventLoop::run();

        self::assertSame(
            array_fill(0, 10, true),
            array_map(static fn(Future $future): bool => $future->isComplete(), $futures),
        );
    }

    public function testAForkOfThisProcessCanNotUseThePool(): void
    {
        if (!\function_exists('pcntl_fork')) {
            self::markTestSkipped('Needs ext-pcntl');
        }
        $pool = $this->pool(1);
        self::assertUsable($pool);
        $said = $this->path('said');
        $pid = pcntl_fork();
        if ($pid === 0) {
            foreach ([
                static fn() => $pool->submit(Number::answer(...)),
                static fn() => $pool->map([1], Number::double(...)),
                $pool->close(...),
                $pool->kill(...),
            ] as $use) {
                try {
                    $use();
                } catch (ExecutorClosedException $refused) {
                    file_put_contents($said, "{$refused->getMessage()}\n", \FILE_APPEND);
                }
            }
            $use = $pool = null;
            $this->dropExecutors();
            posix_kill((int) getmypid(), \SIGKILL);
        }
        pcntl_waitpid($pid, $status);
        \assert($pool !== null);

        self::assertCount(4, Text::lines($said));
        self::assertStringContainsString('Create another pool after the fork', (string) file_get_contents($said));
        self::assertUsable($pool);
    }
}
