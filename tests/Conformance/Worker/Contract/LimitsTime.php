<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Worker\Collected;
use Spindle\Tests\Conformance\Worker\PoolTestCase;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\WorkerTasks;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskTimeoutException;

use function Amp\delay;

/**
 * Tests tasks that are ended because they exceeded the time limit, or were cancelled.
 *
 * @phpstan-require-extends PoolTestCase
 */
trait LimitsTime
{
    public function testATaskThatRunsForTooLongIsEnded(): void
    {
        $pid = $this->path('pid');
        $pool = $this->pool(1, timeout: 0.2);
        $late = self::failure(TaskTimeoutException::class, $pool->submit(static fn() => WorkerTasks::hang($pid)));

        self::assertSame('The task ran for more than 0.2 seconds and was ended', $late->getMessage());
        self::assertSame([1, null], [$late->attempts, $late->key]);
        self::assertIsGone(Text::numbersIn($pid));
        self::assertUsable($pool);
    }

    public function testATaskBehindOneThatBlocksAndRunsForTooLongHasAnotherWorker(): void
    {
        $pool = $this->pool(1, timeout: 0.3, gracePeriod: 0.2);
        $blocked = $pool->submit(static fn(): int => sleep(1000));
        $behind = $pool->submit([Number::class, 'answer']);

        self::failure(TaskTimeoutException::class, $blocked);
        self::assertSame(42, $behind->await());
    }

    /** The generator works ahead of its reader until 64 items are unread. */
    public function testTheTimeOfAGeneratorDoesNotRunWhileItsReaderPauses(): void
    {
        $pool = $this->pool(1, timeout: 0.3);
        $items = $pool->submit(static fn(): \Generator => yield from range(1, 200))->await();
        $all = [];
        foreach ($items as $item) {
            $all[] = $item;
            if ($item === 1) {
                delay(0.7); // longer than the task may run
            } elseif ($item === 120) {
                usleep(700_000); // the loop does not turn
            }
        }

        self::assertSame(range(1, 200), $all);
        self::assertUsable($pool);
    }

    public function testTheTimesBetweenTheItemsOfAGeneratorAddUp(): void
    {
        $pool = $this->pool(1, timeout: 0.3);
        $items = $pool->submit(static function (): \Generator {
            for ($i = 0; ; ++$i) {
                yield $i;
                usleep(20_000);
            }
        })->await();
        $late = self::thrown(TaskTimeoutException::class, static fn(): int => iterator_count($items));

        self::assertSame('The task ran for more than 0.3 seconds and was ended', $late->getMessage());
        self::assertUsable($pool);
    }

    public function testATaskOfALoopThatRunsForTooLongNamesItsKey(): void
    {
        $pool = $this->pool(timeout: 0.2);
        $results = new Collected($pool->map(
            ['a' => 1, 'b' => 0, 'c' => 2],
            static fn(int $i): int => $i > 0 ? $i : WorkerTasks::hang(),
        ));

        self::assertSame(['a'], $results->keys);
        self::assertInstanceOf(TaskTimeoutException::class, $results->thrown);
        self::assertSame('b', $results->thrown->key);
        self::assertUsable($pool);
    }

    public function testTheTimeOfATaskBeginsWhenItStarts(): void
    {
        $pool = $this->pool(1, timeout: 0.4);
        $task = static function (int $i): int {
            usleep(60_000);

            return $i;
        };

        self::assertSame(range(1, 10), iterator_to_array($pool->map(range(1, 10), $task), false));
    }

    /** A large result is still being written when the time limit passes. A small one has arrived and was not read. */
    #[TestWith([10])]
    #[TestWith([8 << 20])]
    public function testALateReadOfAResultIsNoTimeout(int $bytes): void
    {
        $returns = $this->path('returns');
        $pool = $this->pool(1, timeout: 0.5);
        $worker = $pool->submit(WorkerTasks::worker(...))->await();
        $future = $pool->submit(static function () use ($returns, $bytes): string {
            touch($returns);

            return str_repeat('x', $bytes);
        });
        $asleep = 0;
        Eventually::holdsByItself(static function () use ($returns, $worker, &$asleep): bool {
            $asleep = is_file($returns) && Processes::state($worker) === 'S' ? $asleep + 1 : 0;
            clearstatcache();

            return $asleep >= 3;
        }, 'it has returned, and waits for the pool');
        $end = hrtime(true) + 600_000_000;
        Eventually::holdsByItself(static fn(): bool => hrtime(true) > $end, 'the time is over');

        self::assertSame($bytes, \strlen($future->await()));
        self::assertSame($worker, $pool->submit(WorkerTasks::worker(...))->await());
    }

    public function testATimeoutFailsOnlyTheTaskThatRan(): void
    {
        $pool = $this->pool(timeout: 0.3);
        $futures = [];
        for ($i = 0; $i < 40; ++$i) {
            $futures[] = $pool->submit($i === 20 ? WorkerTasks::hang(...) : new Number($i))->ignore();
        }
        foreach ($futures as $i => $future) {
            if ($i === 20) {
                self::failure(TaskTimeoutException::class, $future);
            } else {
                self::assertSame($i, $future->await());
            }
        }
    }

    public function testATaskThatObtainsItsCancellationMayEndByItself(): void
    {
        $this->needsCancellationInTasks();
        $ended = $this->path('ended');
        $pool = $this->pool(1, timeout: 0.5, gracePeriod: 10.0);
        $late = self::failure(TaskTimeoutException::class, $pool->submit(static function () use ($ended): void {
            $cancellation = TaskContext::current()->cancellation();
            while (!$cancellation->isRequested()) {
                usleep(1000);
            }
            touch($ended);
        }));

        self::assertSame(1, $late->attempts);
        self::assertFileExists($ended);
        $start = hrtime(true);
        self::assertUsable($pool);
        self::assertLessThan(5.0, (hrtime(true) - $start) / 1e9, 'seconds, of a grace of 10 that is not needed');
    }

    public function testATaskThatIgnoresItsCancellationIsEnded(): void
    {
        $pid = $this->path('pid');
        $cancellation = new DeferredCancellation();
        $pool = $this->pool(1);
        $future = $pool->submit(static fn() => WorkerTasks::hang($pid), $cancellation->getCancellation());
        Eventually::holds(static fn(): bool => Text::numbersIn($pid) !== [], 'it has started');
        $cancellation->cancel();
        self::failure(CancelledException::class, $future);

        self::assertIsGone(Text::numbersIn($pid));
        self::assertUsable($pool);
    }

    public function testATaskThatWaitsBehindAnotherIsCancelledAtOnce(): void
    {
        $gate = $this->gate();
        $cancellation = new DeferredCancellation();
        $pool = $this->pool(1);
        $running = $pool->submit(static fn(): string => $gate->pass('first'));
        $gate->awaitTasks(1);
        $waiting = $pool->submit(static fn(): string => $gate->say('second'), $cancellation->getCancellation());
        $cancellation->cancel();
        self::failure(CancelledException::class, $waiting);
        self::assertFalse($running->isComplete());
        $gate->open();

        self::assertSame('first', $running->await());
        self::assertUsable($pool);
        self::assertSame(['first'], $gate->names());
    }

    public function testATaskThatWaitsBehindOneOfALoopIsCancelledAtOnce(): void
    {
        $gate = $this->gate();
        $cancellation = new DeferredCancellation();
        $pool = $this->pool(1);
        for ($i = 0; $i < 20; ++$i) {
            // measured as quick, so that a busy worker gets the next task early
            $pool->submit(Number::answer(...))->await();
        }
        $loop = Async::run(static fn(): Collected => new Collected($pool->map(['running'], $gate->pass(...))));
        $gate->awaitTasks(1);
        $behind = [];
        foreach (['first', 'second', 'third'] as $name) {
            $behind[$name] = $pool->submit(
                static fn(): string => $gate->say($name),
                $name === 'third' ? null : $cancellation->getCancellation(),
            );
        }
        $cancellation->cancel();
        self::failure(CancelledException::class, $behind['first']);
        self::failure(CancelledException::class, $behind['second']);
        self::assertFalse($loop->isComplete());
        $gate->open();

        self::assertSame(['running'], $loop->await()->values);
        self::assertSame('third', $behind['third']->await());
        self::assertSame(['running', 'third'], $gate->names());
    }

    public function testATaskThatAnotherWorkerHasTakenOverIsEndedByItsCancellation(): void
    {
        $gate = $this->gate();
        $pid = $this->path('pid');
        $cancellation = new DeferredCancellation();
        $pool = $this->pool();
        for ($i = 0; $i < 20; ++$i) {
            // measured as quick, so that a busy worker gets the next task early
            $pool->submit(Number::answer(...))->await();
        }
        $long = $pool->submit(static fn(): string => $gate->pass('long'));
        $behind = $pool->submit(static fn() => WorkerTasks::hang($pid), $cancellation->getCancellation());
        Eventually::holds(
            static fn(): bool => Text::numbersIn($pid) !== [],
            'it is taken from the first worker, and started in another',
        );
        $cancellation->cancel();
        self::failure(CancelledException::class, $behind);

        self::assertIsGone(Text::numbersIn($pid));
        self::assertFalse($long->isComplete());
        $gate->open();
        self::assertSame('long', $long->await());
        self::assertUsable($pool);
    }

    public function testACancelledLoopEndsTasksThatIgnoreTheCancellation(): void
    {
        $pid = $this->path('pid');
        $cancellation = new DeferredCancellation();
        $pool = $this->pool(1);
        self::thrown(CancelledException::class, static function () use ($pool, $pid, $cancellation): void {
            foreach ($pool->map(
                [0, 1],
                static fn(int $i): int => $i === 0 ? 0 : WorkerTasks::hang($pid),
                $cancellation->getCancellation(),
            ) as $_) {
                Eventually::holds(static fn(): bool => Text::numbersIn($pid) !== [], 'the second has started');
                $cancellation->cancel();
            }
        });

        self::assertIsGone(Text::numbersIn($pid));
        self::assertUsable($pool);
    }

    public function testACancelledLoopThrowsTheCancellationWhileItReadsAGenerator(): void
    {
        $cancellation = new DeferredCancellation();
        $pool = $this->pool(1);
        $endless = static function (): \Generator {
            for (;;) {
                yield 'item';
            }
        };
        self::thrown(CancelledException::class, static function () use ($pool, $endless, $cancellation): void {
            foreach ($pool->map([0], $endless, $cancellation->getCancellation()) as $items) {
                foreach ($items as $_) {
                    $cancellation->isCancelled() ? null : $cancellation->cancel();
                }
            }
        });

        self::assertUsable($pool);
    }

    public function testALoopThatIsLeftEndsRunningTasks(): void
    {
        $pid = $this->path('pid');
        $pool = $this->pool(1);
        foreach ($pool->map([0, 1], static fn(int $i): int => $i === 0 ? 0 : WorkerTasks::hang($pid)) as $_) {
            Eventually::holds(static fn(): bool => Text::numbersIn($pid) !== [], 'the second has started');
            break;
        }
        self::assertUsable($pool);

        self::assertIsGone(Text::numbersIn($pid));
    }

    /** @param list<int> $pids */
    private static function assertIsGone(array $pids): void
    {
        self::assertCount(1, $pids);
        Eventually::holds(static fn(): bool => !Processes::isAlive($pids[0]), 'the process is gone');
    }
}
