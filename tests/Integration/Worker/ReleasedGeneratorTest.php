<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\EndsInTime;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

/** Tests generator tasks that yield no more items after their reader has released them. */
final class ReleasedGeneratorTest extends TestCase
{
    use EndsInTime;

    /** @return iterable<string, array{WorkerContext}> */
    public static function contexts(): iterable
    {
        yield 'process' => [WorkerContext::Process];
        if (\function_exists('pcntl_fork')) {
            yield 'fork' => [WorkerContext::Fork];
        }
    }

    #[DataProvider('contexts')]
    public function testItsWorkerIsEndedAndTheNextTaskRuns(WorkerContext $context): void
    {
        $pool = new WorkerPool(1, options: new WorkerPoolOptions($context));
        $items = $pool->submit(self::stuckAfterOne())->await();
        $items->current();
        unset($items);

        self::assertSame(2, $pool->submit(static fn(): int => 2)->await(new TimeoutCancellation(10)));
        $pool->close();
    }

    public function testThePoolCanBeClosed(): void
    {
        $pool = new WorkerPool(1);
        $items = $pool->submit(self::stuckAfterOne())->await();
        unset($items);
        $pool->close();

        self::assertSame(0, $pool->statistics()['in_use']);
    }

    public function testALoopGoesOnAfterOneOfItsGeneratorsWasReleased(): void
    {
        $pool = new WorkerPool(1);
        $task = static function (int $number): \Generator {
            yield $number;
            while ($number === 1) {
                usleep(10_000);
            }
        };
        $read = [];
        foreach ($pool->map([1, 2], $task) as $items) {
            $read[] = $items->current();
            unset($items);
        }
        $pool->close();

        self::assertSame([1, 2], $read);
    }

    public function testATaskThatEndsSoonKeepsItsWorker(): void
    {
        $pool = new WorkerPool(1);
        $before = $pool->submit(getmypid(...))->await();
        $items = $pool->submit(static function (): \Generator {
            while (true) {
                yield 1;
            }
        })->await();
        $items->current();
        unset($items);

        self::assertSame($before, $pool->submit(getmypid(...))->await());
        $pool->close();
    }

    /** @return \Closure(): \Generator<int, string> */
    private static function stuckAfterOne(): \Closure
    {
        return static function (): \Generator {
            yield 'first';
            while (true) { // @phpstan-ignore while.alwaysTrue
                usleep(10_000);
            }
        };
    }
}
