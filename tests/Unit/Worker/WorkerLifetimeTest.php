<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Worker\Internal\Batch;
use Spindle\Worker\Internal\Context;
use Spindle\Worker\Internal\Source;
use Spindle\Worker\Internal\WorkerEvents;
use Spindle\Worker\Internal\WorkerGroup;
use Spindle\Worker\Internal\WorkerHandle;
use Spindle\Worker\Internal\WorkerLifetime;
use Spindle\Worker\Internal\WorkerSettings;
use Spindle\Worker\WorkerPoolOptions;

final class WorkerLifetimeTest extends TestCase
{
    /**
     * @return iterable<string, array{WorkerPoolOptions, \Closure(WorkerHandle): mixed, bool}> options, a change of the
     *         worker, whether it must be replaced
     */
    public static function lives(): iterable
    {
        $nothing = static fn(WorkerHandle $worker): mixed => null;
        yield 'without a limit' => [
            new WorkerPoolOptions(),
            static fn(WorkerHandle $worker) => $worker->outcomeCount = \PHP_INT_MAX,
            false,
        ];
        yield 'before its last task' => [
            new WorkerPoolOptions(maxTasks: 3),
            static fn(WorkerHandle $worker) => $worker->outcomeCount = 2,
            false,
        ];
        yield 'after its last task' => [
            new WorkerPoolOptions(maxTasks: 3),
            static fn(WorkerHandle $worker) => $worker->outcomeCount = 3,
            true,
        ];
        yield 'young' => [new WorkerPoolOptions(maxAge: 30.0), $nothing, false];
        yield 'before its age' => [
            new WorkerPoolOptions(maxAge: 30.0),
            static fn(WorkerHandle $worker) => $worker->readyAt -= 29_000_000_000,
            false,
        ];
        yield 'at its age' => [
            new WorkerPoolOptions(maxAge: 30.0),
            static fn(WorkerHandle $worker) => $worker->readyAt -= 30_000_000_000,
            true,
        ];
        yield 'of any age' => [
            new WorkerPoolOptions(maxAge: \INF),
            static fn(WorkerHandle $worker) => $worker->readyAt = 0,
            false,
        ];
        yield 'as large as it may be' => [
            new WorkerPoolOptions(maxGrowth: 10),
            static fn(WorkerHandle $worker) => $worker->memory += 10,
            false,
        ];
        yield 'too large' => [
            new WorkerPoolOptions(maxGrowth: 10),
            static fn(WorkerHandle $worker) => $worker->memory += 11,
            true,
        ];
    }

    /** @param \Closure(WorkerHandle): mixed $life */
    #[DataProvider('lives')]
    public function testAWorkerIsToBeReplacedWhenItHasLivedLongEnough(
        WorkerPoolOptions $options,
        \Closure $life,
        bool $isOver,
    ): void {
        $worker = $this->worker();
        $life($worker);

        self::assertSame($isOver, (new WorkerLifetime($options))->isOver($worker));
    }

    public function testTasksThatItHasCountAmongThoseThatItMayBeGiven(): void
    {
        $worker = $this->worker();
        $worker->outcomeCount = 10;
        $worker->batches = [$this->batch(5), $this->batch(4)];
        $worker->batches[0]->receivedCount = 2; // already counted in the ten
        $worker->batches[1]->limit = 1; // the others were taken back

        self::assertSame(6, (new WorkerLifetime(new WorkerPoolOptions(maxTasks: 20)))->tasksLeft($worker));
        self::assertSame(0, (new WorkerLifetime(new WorkerPoolOptions(maxTasks: 12)))->tasksLeft($worker));
        self::assertSame(\PHP_INT_MAX, (new WorkerLifetime(new WorkerPoolOptions()))->tasksLeft($worker));
    }

    public function testAWorkerAtItsAgeMayBeGivenNoTask(): void
    {
        $worker = $this->worker();
        $lifetime = new WorkerLifetime(new WorkerPoolOptions(maxAge: 30.0));
        self::assertSame(\PHP_INT_MAX, $lifetime->tasksLeft($worker));
        $worker->readyAt -= 31_000_000_000;

        self::assertSame(0, $lifetime->tasksLeft($worker));
    }

    public function testTheIdleTimeOfAWorkerIsCounted(): void
    {
        $worker = $this->worker();
        $worker->idleSince = hrtime(true) - 20_000_000_000;

        self::assertEqualsWithDelta(
            40.0,
            (new WorkerLifetime(new WorkerPoolOptions(idleTimeout: 60.0)))->idleLeft($worker),
            1.0,
        );
        self::assertInfinite((new WorkerLifetime(new WorkerPoolOptions(idleTimeout: \INF)))->idleLeft($worker));
    }

    private function worker(): WorkerHandle
    {
        $context = static fn(): Context => self::createStub(Context::class);
        $settings = new WorkerSettings(new WorkerPoolOptions());
        $group = new WorkerGroup($context, $settings, 1.0, self::createStub(WorkerEvents::class));
        $worker = new WorkerHandle(1, 1, $group);
        $worker->setReady(pack('P', 1000));

        return $worker;
    }

    private function batch(int $tasks): Batch
    {
        return new Batch(self::createStub(Source::class), 0, array_fill(0, $tasks, 1), array_fill(0, $tasks, 1), false);
    }
}
