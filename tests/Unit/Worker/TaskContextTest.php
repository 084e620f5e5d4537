<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use Amp\NullCancellation;
use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\TestCase;
use Spindle\Worker\TaskContext;

final class TaskContextTest extends TestCase
{
    #[After]
    protected function leave(): void
    {
        TaskContext::enter(null);
    }

    public function testNoContextExistsOutsideOfATask(): void
    {
        self::assertFalse(TaskContext::exists());
        $this->expectException(\LogicException::class);
        TaskContext::current();
    }

    public function testTheContextOfTheProcessIsVisibleInAllFibers(): void
    {
        TaskContext::enter($context = self::context());

        self::assertSame($context, TaskContext::current());
        self::assertSame($context, self::inFiber(TaskContext::current(...)));
        TaskContext::enter(null);
        self::assertFalse(TaskContext::exists());
        self::assertFalse(self::inFiber(TaskContext::exists(...)));
    }

    public function testTheContextOfAFiberIsVisibleOnlyInTheFiber(): void
    {
        $context = self::context();
        $found = self::inFiber(static function () use ($context): array {
            TaskContext::enter($context, \Fiber::getCurrent());

            return [TaskContext::exists(), TaskContext::current(), self::inFiber(TaskContext::exists(...))];
        });

        self::assertSame([true, $context, false], $found);
        self::assertFalse(TaskContext::exists());
    }

    public function testTheContextOfAFiberPrecedesThatOfTheProcess(): void
    {
        TaskContext::enter($process = self::context());
        $context = self::context();
        $found = self::inFiber(static function () use ($context): TaskContext {
            TaskContext::enter($context, \Fiber::getCurrent());

            return TaskContext::current();
        });

        self::assertSame($context, $found);
        self::assertSame($process, TaskContext::current());
    }

    public function testAContextPassesOnReportsAndCancellations(): void
    {
        $cancellation = new NullCancellation();
        $reports = [];
        $context = new TaskContext(
            3,
            static fn() => $cancellation,
            static function (mixed $report) use (&$reports): void {
                $reports[] = $report;
            },
        );
        $context->report('half');

        self::assertSame([3, $cancellation, ['half']], [$context->attempt, $context->cancellation(), $reports]);
    }

    private static function context(): TaskContext
    {
        return new TaskContext(1, static fn() => new NullCancellation(), static function (): void {});
    }

    /**
     * @template T
     *
     * @param \Closure(): T $work
     *
     * @return T
     */
    private static function inFiber(\Closure $work): mixed
    {
        $fiber = new \Fiber($work);
        $fiber->start();

        return $fiber->getReturn();
    }
}
