<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Revolt\EventLoop;
use Spindle\Tests\Conformance\Worker\ExecutorTestCase;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\Suit;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\UnserializableException;

use function Amp\delay;

/**
 * Tests the context of a task.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait HasContext
{
    public function testAReceiverOfReportsThatThrowsDoesNotFailTheTask(): void
    {
        $thrown = [];
        $before = EventLoop::getErrorHandler();
        EventLoop::setErrorHandler(static function (\Throwable $throwable) use (&$thrown): void {
            $thrown[] = $throwable->getMessage();
        });
        try {
            $executor = $this->executor(static fn() => throw new \DomainException('not wanted'));
            $result = $executor->submit(static function (): string {
                TaskContext::current()->report(1);

                return 'done';
            })->await();
            delay(0);
        } finally {
            EventLoop::setErrorHandler($before);
        }

        self::assertSame('done', $result);
        self::assertSame(['not wanted'], $thrown);
    }

    public function testOnlyTasksHaveAContext(): void
    {
        $executor = $this->executor();
        $task = static function (): array {
            $before = [TaskContext::exists(), TaskContext::current()->attempt];
            delay(0.001);

            return [...$before, TaskContext::exists(), TaskContext::current()->attempt];
        };

        self::assertFalse(TaskContext::exists());
        $future = $executor->submit($task);
        delay(0.0005);
        self::assertFalse(TaskContext::exists());
        self::assertSame([true, 1, true, 1], $future->await());
        self::assertFalse(TaskContext::exists());
        self::assertSame(
            [[true, 1, true, 1]],
            iterator_to_array($executor->map([1], static fn(int $i): array => $task())),
        );
        self::assertFalse(TaskContext::exists());
    }

    public function testOutsideOfATaskThereIsNoContext(): void
    {
        self::assertUsable($this->executor());
        $thrown = self::thrown(\LogicException::class, TaskContext::current(...));

        self::assertStringContainsString('No task is running here', $thrown->getMessage());
    }

    public function testAGeneratorHasItsContextForEachItem(): void
    {
        $items = self::items($this->executor(), static function (): \Generator {
            for ($i = 0; $i < 5; ++$i) {
                delay(0);
                yield TaskContext::exists() && TaskContext::current()->attempt === 1;
            }
        });

        self::assertSame(array_fill(0, 5, true), iterator_to_array($items));
    }

    public function testReportsComeInTheirOrderBeforeTheResult(): void
    {
        $reports = [];
        $executor = $this->executor(static function (mixed $report) use (&$reports): void {
            $reports[] = $report;
        });
        $number = new Number(3);
        $result = $executor->submit(static function () use ($number): string {
            foreach ([1, 'two', ['x' => Suit::Hearts], $number, null] as $report) {
                TaskContext::current()->report($report);
            }

            return 'done';
        })->await();

        self::assertSame('done', $result);
        self::assertEquals([1, 'two', ['x' => Suit::Hearts], $number, null], $reports);
        self::assertNotSame($number, $reports[3]);
    }

    public function testReportsOfALoopAllArrive(): void
    {
        $reports = [];
        $executor = $this->executor(static function (mixed $report) use (&$reports): void {
            $reports[] = $report;
        });
        $task = static function (int $i): int {
            TaskContext::current()->report($i);

            return $i;
        };
        iterator_to_array($executor->map(range(0, 99), $task));
        sort($reports);

        self::assertSame(range(0, 99), $reports);
    }

    public function testAReportWithoutAReceiverIsNoError(): void
    {
        $task = static function (): int {
            TaskContext::current()->report('hm');

            return 5;
        };

        self::assertSame(5, $this->executor()->submit($task)->await());
    }

    public function testAnUnserializableReportThrowsInTheTask(): void
    {
        $executor = $this->executor();
        $failed = self::failure(TaskFailedException::class, $executor->submit(static function (): void {
            TaskContext::current()->report(['x' => abs(...)]);
        }));

        self::assertSame(UnserializableException::class, $failed->thrown->class);
        self::assertStringContainsString("The report['x'] is a closure", $failed->thrown->message);
        self::assertUsable($executor);
    }

    public function testACancellationThatIsNotRequestedIsNot(): void
    {
        self::assertFalse(
            $this->executor()
                ->submit(static fn(): bool => TaskContext::current()->cancellation()->isRequested())
                ->await(),
        );
    }
}
