<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use Amp\DeferredFuture;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Worker\Internal\Backlog;
use Spindle\Worker\Internal\Batch;
use Spindle\Worker\Internal\PoolEvents;
use Spindle\Worker\Internal\Submission;
use Spindle\Worker\Internal\TaskSource;
use Spindle\Worker\Internal\WorkerProtocol;

use function Amp\delay;

final class BacklogTest extends TestCase
{
    private int $ready = 0;

    /** @var list<array{mixed, string}> keys and messages of failed tasks */
    private array $failed = [];

    private Backlog $backlog;

    protected function setUp(): void
    {
        $this->ready = 0;
        $this->failed = [];
        $pool = self::createStub(PoolEvents::class);
        $pool->method('fill')->willReturnCallback(function (): void {
            ++$this->ready;
        });
        $this->backlog = new Backlog($pool);
    }

    public function testBatchesComeBackInTheOrderTheyWereAdded(): void
    {
        $source = $this->source();
        foreach ([[1, 2], [3], [4, 5]] as $tasks) {
            $this->backlog->add($this->batch($source, $tasks));
        }

        self::assertSame(3, $this->backlog->batchCount());
        self::assertSame([[1, 2], [3], [4, 5]], $this->all());
        self::assertSame(0, $this->backlog->batchCount());
        self::assertNull($this->backlog->shift(1));
    }

    public function testTheRestOfABatchPrecedesTheNextBatch(): void
    {
        $source = $this->source();
        $this->backlog->add($this->batch($source, range(1, 5), 10));
        $this->backlog->add($this->batch($source, [6]));
        $first = $this->backlog->shift(2);
        $second = $this->backlog->shift(2);

        self::assertSame(
            [[1, 2], 10, [3, 4], 12, 2],
            [$first?->tasks, $first?->first, $second?->tasks, $second?->first, $this->backlog->batchCount()],
        );
        self::assertSame([[5], [6]], $this->all());
    }

    public function testACertainTaskOfAMapIsTakenBeforeEarlierBatches(): void
    {
        [$map, $other] = [$this->source(), $this->source()];
        $this->backlog->add($this->batch($map, [5, 6, 7], 5));
        $this->backlog->add($this->batch($other, [1, 2], 1));
        $this->backlog->add($this->batch($map, [1, 2], 1));
        $this->backlog->shift(1);
        $taken = array_map(
            fn(int $task): ?array => $this->backlog->shiftTask($map, $task)?->tasks,
            [1, 1, 5, 6, 2],
        );

        self::assertSame([[1], null, null, [6], [2]], $taken);
        self::assertSame(2, $this->backlog->batchCount());
        self::assertSame([[7], [1, 2]], $this->all());
    }

    public function testABatchWithoutTasksIsNotAdded(): void
    {
        $this->backlog->add($this->batch($this->source(), []));

        self::assertSame([0, null], [$this->backlog->batchCount(), $this->backlog->shift(1)]);
    }

    public function testRequeuedTasksWaitForAnotherWorker(): void
    {
        $this->backlog->requeue($this->batch($this->source(), [1, 2, 3]), 1, 3);
        $this->backlog->requeue($this->batch($this->source(), [4]), 1, 1);

        self::assertSame([[2, 3]], $this->all());
        self::assertSame([], $this->failed);
    }

    public function testRequeuedTasksFailIfNoOtherWorkerMayRunThem(): void
    {
        $batch = $this->batch($this->source(), [1, 2, 3]);
        $batch->isPinned = true;
        $this->backlog->requeue($batch, 1, 3);

        self::assertSame(0, $this->backlog->batchCount());
        self::assertSame([2, 3], array_column($this->failed, 0));
    }

    public function testABatchWhoseSourceWasLeftIsDropped(): void
    {
        $this->backlog->add($this->batch($this->source(isLeft: true), [1]));

        self::assertSame([0, null], [$this->backlog->batchCount(), $this->backlog->shift(1)]);
    }

    public function testASubmissionIsWithdrawnWithItsOutcomeAndTheOthersKeepTheirOrder(): void
    {
        $source = $this->source();
        $submissions = $this->submissions(7);
        $this->backlog->add($this->batch($source, \array_slice($submissions, 0, 4)));
        $this->backlog->add($this->batch($source, \array_slice($submissions, 4)));
        foreach ([0, 2, 6] as $i) {
            self::assertTrue($this->backlog->withdraw($submissions[$i], new \DomainException("{$i}")));
            self::assertFalse(
                $this->backlog->withdraw($submissions[$i], new \DomainException('again')),
                'it has its outcome',
            );
        }

        self::assertSame([[$submissions[0], '0'], [$submissions[2], '2'], [$submissions[6], '6']], $this->failed);
        self::assertSame(2, $this->backlog->batchCount());
        self::assertSame([[$submissions[1]], [$submissions[3]], [$submissions[4], $submissions[5]]], $this->all());
        self::assertFalse($this->backlog->withdraw($submissions[1], new \DomainException('late')), 'it is not here');
    }

    public function testABatchWhoseTasksWereAllWithdrawnIsNotReturned(): void
    {
        $source = $this->source();
        $submissions = $this->submissions(5);
        $this->backlog->add($this->batch($source, [$submissions[0]]));
        $this->backlog->add($this->batch($source, [$submissions[1], $submissions[2]]));
        $this->backlog->add($this->batch($source, [$submissions[3], $submissions[4]]));
        foreach ([1, 2] as $i) {
            $this->backlog->withdraw($submissions[$i], new \DomainException());
        }
        self::assertSame(2, $this->backlog->batchCount());
        self::assertSame([$submissions[0]], $this->backlog->shift(9)?->tasks);
        self::assertSame([$submissions[3]], $this->backlog->shift(1)?->tasks);
        $this->backlog->withdraw($submissions[4], new \DomainException());

        self::assertSame([0, null], [$this->backlog->batchCount(), $this->backlog->shift(9)]);
    }

    public function testACancelledTaskFailsWhenItIsAdded(): void
    {
        $submissions = $this->submissions(5);
        foreach ([0, 2, 3] as $i) {
            $submissions[$i]->cancelled = new \DomainException("{$i}");
        }
        $this->backlog->add($this->batch($this->source(), $submissions));

        self::assertSame([[$submissions[0], '0'], [$submissions[2], '2'], [$submissions[3], '3']], $this->failed);
        self::assertSame([[$submissions[1]], [$submissions[4]]], $this->all());
    }

    public function testASubmissionThatWasGivenAwayCanComeBack(): void
    {
        [$submission, $other] = $this->submissions(2);
        $this->backlog->add($this->batch($this->source(), [$submission, $other]));
        $batch = $this->backlog->shift(1);
        self::assertNotNull($batch);
        $this->backlog->add($batch);

        self::assertTrue($this->backlog->withdraw($submission, new \DomainException()));
        self::assertSame([[$other]], $this->all());
    }

    public function testARetryWaitsForItsDelay(): void
    {
        $this->backlog->addDelayed($this->batch($this->source(), [1]), 0.02);
        self::assertSame([0, null], [$this->backlog->batchCount(), $this->backlog->shift(1)]);
        for ($end = hrtime(true) + 5_000_000_000; $this->ready === 0 && hrtime(true) < $end;) {
            delay(0.005);
        }

        self::assertSame([1, [[1]]], [$this->ready, $this->all()]);
    }

    public function testARetryIsWithdrawnWithItsTimer(): void
    {
        $timers = EventLoop::getIdentifiers();
        $submissions = $this->submissions(2);
        foreach ($submissions as $submission) {
            $this->backlog->addDelayed($this->batch($this->source(), [$submission]), 60.0);
        }
        self::assertTrue($this->backlog->withdraw($submissions[0], new \DomainException('no more')));

        self::assertCount(1, array_diff(EventLoop::getIdentifiers(), $timers));
        $this->backlog->fail(new \DomainException('over'));
        self::assertSame([[$submissions[0], 'no more'], [$submissions[1], 'over']], $this->failed);
        self::assertSame([], array_diff(EventLoop::getIdentifiers(), $timers));
    }

    public function testDroppingASourceKeepsTheTasksOfOthers(): void
    {
        $timers = EventLoop::getIdentifiers();
        [$left, $other] = [$this->source(), $this->source()];
        foreach ([[$left, [1, 2]], [$other, [3, 4]], [$left, [5]], [$other, [6]]] as [$source, $tasks]) {
            $this->backlog->add($this->batch($source, $tasks));
        }
        $this->backlog->addDelayed($this->batch($left, [7]), 60.0);
        $this->backlog->shift(1);
        $this->backlog->drop($left);

        self::assertSame([2, []], [$this->backlog->batchCount(), array_diff(EventLoop::getIdentifiers(), $timers)]);
        self::assertSame([[3, 4], [6]], $this->all());
    }

    public function testDroppingASourceKeepsTheOffsetInTheFirstBatch(): void
    {
        [$left, $other] = [$this->source(), $this->source()];
        $this->backlog->add($this->batch($other, [1, 2, 3]));
        $this->backlog->add($this->batch($left, [4]));
        $this->backlog->shift(1);
        $this->backlog->drop($left);

        self::assertSame([[2, 3]], $this->all());
    }

    public function testAllWaitingTasksFailOnce(): void
    {
        $source = $this->source();
        $submissions = $this->submissions(4);
        $this->backlog->add($this->batch($source, $submissions));
        $this->backlog->add($this->batch($source, ['x', 'y']));
        $this->backlog->shift(1);
        $this->backlog->withdraw($submissions[2], new \DomainException('withdrawn'));
        $this->backlog->fail(new \DomainException('over'));

        self::assertSame(
            [
                [$submissions[2], 'withdrawn'],
                [$submissions[1], 'over'],
                [$submissions[3], 'over'],
                ['x', 'over'],
                ['y', 'over'],
            ],
            $this->failed,
        );
        self::assertSame([0, null], [$this->backlog->batchCount(), $this->backlog->shift(9)]);
    }

    /** Fails when each operation copies or searches the list of all tasks: that takes much longer. */
    public function testTheTimeForEachValueDoesNotGrowWithTheirNumber(): void
    {
        $source = $this->source();
        $batch = $this->batch($source, [1]);
        $submissions = $this->submissions(20_000);
        $since = hrtime(true);
        for ($i = 0; $i < 50_000; ++$i) {
            $this->backlog->add(clone $batch);
        }
        $this->backlog->add($this->batch($source, $submissions));
        foreach (array_reverse($submissions) as $i => $submission) {
            if ($i % 2 === 0) {
                $this->backlog->withdraw($submission, new \DomainException());
            }
        }
        $tasks = 0;
        while (($one = $this->backlog->shift(1)) !== null) {
            $tasks += \count($one->tasks);
        }

        self::assertSame(60_000, $tasks);
        self::assertLessThan(3.0, (hrtime(true) - $since) / 1e9, 'seconds');
    }

    /** @return list<array<mixed>> tasks of all batches */
    private function all(): array
    {
        $all = [];
        while (($batch = $this->backlog->shift(\PHP_INT_MAX)) !== null) {
            $all[] = $batch->tasks;
        }

        return $all;
    }

    /** @param list<int|string|Submission> $tasks tasks, which are also their own keys */
    private function batch(TaskSource $source, array $tasks, int $first = 0): Batch
    {
        return new Batch($source, $first, $tasks, $tasks, false);
    }

    /** @return list<Submission> */
    private function submissions(int $count): array
    {
        $submissions = [];
        for ($i = 0; $i < $count; ++$i) {
            /** @var DeferredFuture<mixed> $deferred */
            $deferred = new DeferredFuture();
            $submissions[] = new Submission("{$i}", WorkerProtocol::STRING, $deferred);
        }

        return $submissions;
    }

    private function source(bool $isLeft = false): TaskSource
    {
        $source = self::createStub(TaskSource::class);
        $source->method('isAbandoned')->willReturn($isLeft);
        $source->method('failed')->willReturnCallback(function (Batch $batch, int $index, \Throwable $failure): void {
            $this->failed[] = [$batch->keys[$index], $failure->getMessage()];
        });

        return $source;
    }
}
