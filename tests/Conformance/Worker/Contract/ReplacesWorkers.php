<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\Future;
use Spindle\Internal\CpuCount;
use Spindle\Tests\Conformance\Worker\PoolTestCase;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\WorkerTasks;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Scale;
use Spindle\Worker\WorkerPool;

/**
 * Tests how many workers there are, and how long they live.
 *
 * @phpstan-require-extends PoolTestCase
 */
trait ReplacesWorkers
{
    public function testWorkersLiveForManyTasks(): void
    {
        $pool = $this->pool(1);
        $workers = iterator_to_array($pool->map(range(1, 50), static fn(int $i): int => WorkerTasks::worker()));

        self::assertCount(1, array_unique($workers));
        self::assertNotSame(getmypid(), $workers[0]);
    }

    public function testThePoolHasTheRequestedNumberOfWorkers(): void
    {
        $gate = $this->gate();
        $pool = $this->pool(3);
        $futures = [];
        for ($i = 0; $i < 5; ++$i) {
            $futures[] = $pool->submit(static function () use ($gate, $i): int {
                $gate->pass("{$i}");

                return WorkerTasks::worker();
            });
        }
        $gate->awaitTasks(3);
        $gate->open();
        $workers = array_map(static fn(Future $future): int => $future->await(), $futures);

        self::assertCount(3, array_unique($workers));
    }

    public function testOneTaskNeedsOneWorker(): void
    {
        $before = \count(self::workers());
        $pool = $this->pool(8);
        self::assertUsable($pool);

        self::assertLessThanOrEqual($before + 3, \count(self::workers()));
    }

    public function testAWorkerIsReplacedAfterNTasks(): void
    {
        $pool = $this->pool(1, maxTasks: 2);
        $workers = [];
        for ($i = 0; $i < 6; ++$i) {
            $workers[] = $pool->submit(WorkerTasks::worker(...))->await();
        }

        self::assertSame([2, 2, 2], array_values(array_count_values($workers)));
    }

    public function testNoTaskIsLostWhenWorkersAreReplaced(): void
    {
        $pool = $this->pool(maxTasks: 20);
        $count = Scale::of(600);
        $workers = iterator_to_array($pool->map(range(1, $count), static fn(int $i): int => WorkerTasks::worker()));

        self::assertCount($count, $workers);
        self::assertLessThanOrEqual(20, max([0, ...array_count_values($workers)]));
        self::assertGreaterThanOrEqual(intdiv($count, 20), \count(array_unique($workers)));
    }

    public function testWorkersThatAreReplacedAndDoNotEndAreEnded(): void
    {
        $this->needsAProcessForEachWorker('one that does not end keeps the next from being started');
        $blocked = $this->path('blocked');
        $pool = $this->pool(1, gracePeriod: 0.1, maxTasks: 1);
        $workers = [];
        for ($i = 0; $i < 3; ++$i) {
            $workers[] = $pool->submit(static function () use ($blocked): int {
                register_shutdown_function(static function () use ($blocked): never {
                    file_put_contents($blocked, ':', \FILE_APPEND);
                    WorkerTasks::hang();
                });

                return WorkerTasks::worker();
            })->await();
        }
        Eventually::holds(
            static fn(): bool => is_file($blocked) && file_get_contents($blocked) === ':::',
            'they do not end by themselves',
        );
        self::assertCount(3, array_unique($workers));
        Eventually::holds(
            static fn(): bool => array_filter($workers, Processes::isAlive(...)) === [],
            'they are gone',
            10.0,
        );
        $start = hrtime(true);
        $pool->close();

        self::assertLessThan(1.5, (hrtime(true) - $start) / 1e9, 'seconds');
    }

    public function testAWorkerIsReplacedAtItsAge(): void
    {
        $pool = $this->pool(1, maxLifetime: 0.2);
        $first = $pool->submit(WorkerTasks::worker(...))->await();

        Eventually::holds(
            static fn(): bool => $pool->submit(WorkerTasks::worker(...))->await() !== $first,
            'another one has taken its place',
        );
    }

    public function testNoTaskIsLostWhenWorkersAreReplacedAtTheirAge(): void
    {
        $pool = $this->pool(maxLifetime: 0.05);
        $numbers = [];
        /** @var \ArrayObject<int, true> $workers */
        $workers = new \ArrayObject();
        $input = static function () use ($workers): \Generator {
            $last = 0;
            while (\count($workers) < 4 || $last < (Scale::isFull() ? 300 : 20)) {
                yield ++$last;
            }

            return $last;
        };
        $values = $input();
        $task = static function (int $i): array {
            usleep(1000);

            return [$i, WorkerTasks::worker()];
        };
        foreach ($pool->map($values, $task) as [$number, $worker]) {
            $numbers[] = $number;
            $workers[$worker] = true;
        }

        self::assertSame(range(1, $values->getReturn()), $numbers);
    }

    public function testAWorkerThatHasGrownIsReplaced(): void
    {
        $pool = $this->pool(1, maxMemoryGrowthBytes: 12 << 20);
        $workers = [];
        for ($i = 0; $i < 6; ++$i) {
            $workers[] = $pool->submit(static fn(): int => WorkerTasks::keep(8 << 20))->await();
        }

        self::assertSame([2, 2, 2], array_values(array_count_values($workers)));
    }

    public function testAWorkerThatGrowsWithinABatchStartsNoOtherTaskOfIt(): void
    {
        $pool = $this->pool(1, maxMemoryGrowthBytes: 12 << 20);
        $tiny = static fn(int $bytes): int => $bytes === 0 ? 0 : WorkerTasks::keep($bytes);
        // after many tiny tasks, batches are large
        $workers = iterator_to_array($pool->map([...array_fill(0, 20_000, 0), ...array_fill(0, 60, 1 << 20)], $tiny));
        $tasks = array_count_values(\array_slice($workers, 20_000));

        self::assertSame(60, array_sum($tasks));
        self::assertLessThanOrEqual(16, max([0, ...$tasks]), 'tasks in one worker');
    }

    public function testNoTaskIsLostWhenWorkersThatHaveGrownAreReplaced(): void
    {
        $pool = $this->pool(maxMemoryGrowthBytes: 4 << 20);
        $task = static function (int $bytes): int {
            usleep(3000); // so that each task is a batch, after which the pool checks the worker's memory
            return WorkerTasks::keep($bytes);
        };
        $workers = iterator_to_array($pool->map(array_fill(0, Scale::of(120), 3 << 20), $task));

        self::assertCount(Scale::of(120), $workers);
        self::assertGreaterThan(2, \count(array_unique($workers)));
    }

    public function testAnIdleWorkerEnds(): void
    {
        $pool = $this->pool(1, idleTimeout: 0.1);
        $worker = $pool->submit(WorkerTasks::worker(...))->await();
        Eventually::holds(static fn(): bool => !Processes::isAlive($worker), 'it is gone');

        self::assertNotSame($worker, $pool->submit(WorkerTasks::worker(...))->await());
    }

    public function testAPoolGrowsWhileTasksWait(): void
    {
        $gate = $this->gate();
        $pool = $this->pool(1);
        $futures = [];
        for ($i = 0; $i < 3; ++$i) {
            $futures[] = $pool->submit(static fn(): string => $gate->pass("{$i}"));
        }
        $gate->awaitTasks(1);
        self::assertCount(1, $gate->names());
        $pool->resize(3);
        $gate->awaitTasks(3);
        $gate->open();

        self::assertSame(['0', '1', '2'], array_map(static fn(Future $future): string => $future->await(), $futures));
    }

    public function testAPoolShrinksWhenItsTasksAreDone(): void
    {
        $gate = $this->gate();
        $pool = $this->pool(3);
        $futures = [];
        for ($i = 0; $i < 3; ++$i) {
            $futures[] = $pool->submit(static function () use ($gate, $i): int {
                $gate->pass("{$i}");

                return WorkerTasks::worker();
            });
        }
        $gate->awaitTasks(3);
        $pool->resize(1);
        $gate->open();
        $workers = array_map(static fn(Future $future): int => $future->await(), $futures);
        self::assertCount(3, array_unique($workers));

        Eventually::holds(
            static fn(): bool => \count(array_filter($workers, Processes::isAlive(...))) === 1,
            'one is left',
        );
        self::assertUsable($pool);
    }

    public function testAPoolShrinksInTheMiddleOfALoop(): void
    {
        $pool = $this->pool(3);
        $results = [];
        foreach ($pool->map(range(1, 300), Number::double(...)) as $result) {
            $results[] = $result;
            if ($result === 20) {
                $pool->resize(1);
            }
        }

        self::assertSame(range(2, 600, 2), $results);
    }

    public function testAPoolShrinksAlthoughTasksAreLeft(): void
    {
        $pool = $this->pool(3);
        $counts = [];
        $sinceGrowth = $sinceShrink = 0;
        foreach ($pool->mapUnordered(range(1, 20_000), static fn() => usleep(500)) as $_) {
            if (++$sinceGrowth === 500) { // all workers have two batches
                $sinceShrink = 0;
                $pool->resize(1);
            } elseif ($sinceGrowth > 500) {
                ++$sinceShrink;
            }
            if ($sinceGrowth >= 500 && $pool->statistics()['workers'] === 1) {
                $counts[] = $sinceShrink;
                if (\count($counts) === 5) {
                    break;
                }
                $sinceGrowth = 0;
                $pool->resize(3);
            }
        }

        self::assertCount(5, $counts);
        self::assertLessThan(1000, array_sum($counts), 'results until the pool has shrunk');
        self::assertUsable($pool);
    }

    public function testAPoolThatATaskMakesHasItsShareOfTheCpusAsThePoolAroundItIsNow(): void
    {
        $cpus = (new CpuCount())->usable();
        if ($cpus < 2) {
            self::markTestSkipped('There is one CPU, of which no share is less');
        }
        $task = static fn(): mixed => (new WorkerPool())->__debugInfo()['workers'];
        $pool = $this->pool(1, maxTasks: 1);
        $shares = [];
        foreach ([1, 2, $cpus, 1, \PHP_INT_MAX] as $workers) {
            $pool->resize($workers);
            $shares[] = $pool->submit($task)->await();
        }

        self::assertSame([$cpus, intdiv($cpus, 2), 1, $cpus, 1], $shares);
    }

    public function testAPoolThatATaskOfATasksPoolMakesHasItsShareOfAllOfThem(): void
    {
        $cpus = (new CpuCount())->usable();
        $task = static fn(): mixed => (new WorkerPool())->__debugInfo()['workers'];
        $around = static function () use ($task): mixed {
            $pool = new WorkerPool(1);
            $pool->resize(2);

            return $pool->submit($task)->await();
        };
        $pool = $this->pool(3);

        self::assertSame(max(1, intdiv($cpus, 6)), $pool->submit($around)->await());
    }

    public function testAPoolHasOneWorkerOrMore(): void
    {
        $pool = $this->pool(1);
        foreach ([0, -1] as $workers) {
            self::thrown(\ValueError::class, fn() => $this->pool($workers));
            self::thrown(\ValueError::class, static fn() => $pool->resize($workers));
        }
        self::assertUsable($pool);
    }

    public function testALongTaskDelaysNoLaterTask(): void
    {
        $gate = $this->gate();
        $pool = $this->pool();
        $task = static fn(int $i): string => $i === 20 ? $gate->pass('long') : "{$i}";
        $results = [];
        foreach ($pool->mapUnordered(range(1, 100), $task) as $result) {
            $results[] = $result;
            // Results of tiny tasks just before the long one may arrive after it.
            if (!\in_array('long', $results, true) && array_diff(range(21, 100), $results) === []) {
                $gate->open();
            }
        }

        self::assertContains('long', $results);
        self::assertCount(100, $results);
    }

    public function testATaskBehindALongOneHasAnotherWorkerStarted(): void
    {
        $gate = $this->gate();
        $pool = $this->pool();
        // now tasks are measured as quick, and there is one worker
        self::assertSame(42, $pool->submit([Number::class, 'answer'])->await());
        $long = $pool->submit(static fn(): string => $gate->pass('long'));
        $gate->awaitTasks(1);

        self::assertSame(42, $pool->submit([Number::class, 'answer'])->await());
        self::assertFalse($long->isComplete());
        $gate->open();
        self::assertSame('long', $long->await());
    }

    /** @return list<int> */
    private static function workers(): array
    {
        $workers = [];
        foreach (Processes::launchers() as $launcher) {
            $workers = [...$workers, ...array_keys(Processes::childrenOf($launcher))];
        }

        return $workers;
    }
}
