<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Worker\Internal\Batch;
use Spindle\Worker\Internal\BatchSizing;
use Spindle\Worker\Internal\Context;
use Spindle\Worker\Internal\TaskSource;
use Spindle\Worker\Internal\WorkerEvents;
use Spindle\Worker\Internal\WorkerGroup;
use Spindle\Worker\Internal\WorkerHandle;
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
        yield 'after its last batch id' => [
            new WorkerPoolOptions(),
            static fn(WorkerHandle $worker) => (new \ReflectionProperty($worker, 'lastBatchId'))
                ->setValue($worker, 0x7FFF_FFFF),
            true,
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
        yield 'young' => [new WorkerPoolOptions(maxLifetime: 30.0), $nothing, false];
        yield 'before its age' => [
            new WorkerPoolOptions(maxLifetime: 30.0),
            static fn(WorkerHandle $worker) => $worker->readyAt -= 29_000_000_000,
            false,
        ];
        yield 'at its age' => [
            new WorkerPoolOptions(maxLifetime: 30.0),
            static fn(WorkerHandle $worker) => $worker->readyAt -= 30_000_000_000,
            true,
        ];
        yield 'of any age' => [
            new WorkerPoolOptions(maxLifetime: \INF),
            static fn(WorkerHandle $worker) => $worker->readyAt = 0,
            false,
        ];
        yield 'as large as it may be' => [
            new WorkerPoolOptions(maxMemoryGrowthBytes: 10),
            static fn(WorkerHandle $worker) => $worker->memory += 10,
            false,
        ];
        yield 'too large' => [
            new WorkerPoolOptions(maxMemoryGrowthBytes: 10),
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

        self::assertSame($isOver, $worker->tasksLeft($options) === 0);
    }

    public function testTasksThatItHasCountAmongThoseThatItMayBeGiven(): void
    {
        $worker = $this->worker();
        $worker->outcomeCount = 10;
        $worker->batches = [$this->batch(5), $this->batch(4)];
        $worker->batches[0]->receivedCount = 2; // already counted in the ten
        $worker->batches[1]->limit = 1; // the others were taken back

        self::assertSame(6, $worker->tasksLeft(new WorkerPoolOptions(maxTasks: 20)));
        self::assertSame(0, $worker->tasksLeft(new WorkerPoolOptions(maxTasks: 12)));
        self::assertSame(\PHP_INT_MAX, $worker->tasksLeft(new WorkerPoolOptions()));
    }

    public function testAWorkerAtItsAgeMayBeGivenNoTask(): void
    {
        $worker = $this->worker();
        $options = new WorkerPoolOptions(maxLifetime: 30.0);
        self::assertSame(\PHP_INT_MAX, $worker->tasksLeft($options));
        $worker->readyAt -= 31_000_000_000;

        self::assertSame(0, $worker->tasksLeft($options));
    }

    public function testTheIdleTimeOfAWorkerIsCounted(): void
    {
        $worker = $this->worker();
        $worker->idleSince = hrtime(true) - 20_000_000_000;

        self::assertEqualsWithDelta(
            40.0,
            $worker->idleLeft(new WorkerPoolOptions(idleTimeout: 60.0)),
            1.0,
        );
        self::assertInfinite($worker->idleLeft(new WorkerPoolOptions(idleTimeout: \INF)));
    }

    public function testStandardErrorOfEarlierTasksIsDroppedWhenAnIdleWorkerGetsTasks(): void
    {
        $worker = $this->worker();
        $worker->appendStderr('at the start;');
        $worker->send($this->batch(1));
        self::assertSame('at the start;', $worker->stderr);

        $worker->outcomeCount = 1;
        $worker->send($this->batch(1));
        self::assertSame('at the start;', $worker->stderr);

        $worker->batches = [];
        $worker->send($this->batch(1));
        self::assertSame('', $worker->stderr);
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
        $source = self::createStub(TaskSource::class);
        $source->method('sizing')->willReturn(new BatchSizing());

        return new Batch($source, 0, array_fill(0, $tasks, 1), array_fill(0, $tasks, 1), false);
    }
}
