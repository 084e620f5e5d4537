<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\Future;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Worker\ExecutorTestCase;
use Spindle\Tests\Conformance\Worker\Task\Number;

use function Amp\delay;

/**
 * Tests an executor that many callers use at once.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait IsShared
{
    public function testSeveralFibersUseAnExecutorAtOnce(): void
    {
        $executor = $this->executor();
        $loops = [];
        for ($fiber = 0; $fiber < 5; ++$fiber) {
            $task = static fn(int $i): int => $i * 10 + $fiber;
            $loops[] = Async::run(static function () use ($executor, $task, $fiber): int {
                $sum = 0;
                foreach ($executor->map(range(0, 100), $task) as $i => $value) {
                    self::assertSame($i * 10 + $fiber, $value);
                    $sum += $value + $executor->submit(new Number(1))->await();
                    if ($i % 25 === 0) {
                        delay(0.001);
                    }
                }

                return $sum;
            });
        }

        self::assertSame(
            [50_601, 50_702, 50_803, 50_904, 51_005],
            array_map(static fn(Future $loop): int => $loop->await(), $loops),
        );
    }

    public function testAFiberThatWaitsForItIsNotGarbage(): void
    {
        $late = static function (int $i = 7): int {
            usleep(20_000);

            return $i;
        };

        self::assertSame([7, [1, 2]], Async::alone(function () use ($late): array {
            $executor = $this->make(null);
            $this->dropExecutors();

            return [$executor->submit($late)->await(), iterator_to_array($executor->map([1, 2], $late))];
        }));
        self::assertSame([0, 1, 2], Async::alone(function (): array {
            $items = $this->make(null)->submit(static function (): \Generator {
                for ($i = 0; $i < 3; ++$i) {
                    usleep(20_000);
                    yield $i;
                }
            })->await();
            $this->dropExecutors();

            return iterator_to_array($items);
        }));
    }

    public function testAnExecutorWorksInAFiber(): void
    {
        $executor = $this->executor();
        Async::run(static function () use ($executor): void {
            self::assertUsable($executor);
            self::assertUsable($executor);
        })->await();
        self::assertUsable($executor);
    }

    public function testALoopMayRunInAnother(): void
    {
        $executor = $this->executor();
        $pairs = [];
        foreach ($executor->map([1, 2, 3], Number::double(...)) as $outer) {
            foreach ($executor->mapUnordered([10, 20], Number::double(...)) as $inner) {
                $pairs[] = $outer + $inner;
            }
        }
        sort($pairs);

        self::assertSame([22, 24, 26, 42, 44, 46], $pairs);
    }

    public function testTwoLoopsAreServedInRotation(): void
    {
        $executor = $this->executor();
        $one = $executor->map(range(1, 500), Number::double(...));
        $other = $executor->map(range(501, 1000), Number::double(...));
        $values = [];
        for (; $one->valid() && $other->valid(); $one->next(), $other->next()) {
            $values[] = $one->current();
            $values[] = $other->current();
        }
        self::assertFalse($one->valid());
        self::assertFalse($other->valid());
        sort($values);

        self::assertSame(range(2, 2000, 2), $values);
    }

    public function testATaskIsSubmittedWhileALoopRuns(): void
    {
        $executor = $this->executor();
        $input = static function (): \Generator {
            for ($i = 0; true; ++$i) {
                yield $i;
            }
        };
        $answers = 0;
        foreach ($executor->mapUnordered($input(), Number::double(...)) as $_) {
            $answers += $executor->submit(Number::answer(...))->await();
            if ($answers === 84) {
                break;
            }
        }

        self::assertSame(84, $answers);
    }

    public function testTwoExecutorsAreIndependent(): void
    {
        $one = $this->ownExecutor();
        $other = $this->ownExecutor();
        $three = 3;
        $task = static fn(): int => $three;

        self::assertSame([3, 3], [$one->submit($task)->await(), $other->submit($task)->await()]);
        self::assertUsable($other);
        self::assertUsable($one);
    }

    public function testManyTasksAtOnceHaveEachItsOwnResult(): void
    {
        $executor = $this->executor();
        $futures = [];
        for ($i = 0; $i < 2000; ++$i) {
            $futures[] = $executor->submit(new Number($i));
        }
        foreach ($futures as $i => $future) {
            self::assertSame($i, $future->await());
        }
    }
}
