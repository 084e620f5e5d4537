<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\TestCase;
use Spindle\Worker\Internal\Batch;
use Spindle\Worker\Internal\BatchSizing;
use Spindle\Worker\Internal\EncodedValue;
use Spindle\Worker\Internal\TaskSource;
use Spindle\Worker\Internal\ValuePacking;
use Spindle\Worker\Internal\WorkerProtocol;

final class BatchTest extends TestCase
{
    public function testASliceHasItsTasksKeysAndPlace(): void
    {
        $slice = $this->batch(10, ['a' => 1, 'b' => 2, 'c' => 3, 'd' => 4])->slice(1, 3);

        self::assertSame(
            [11, [2, 3], ['b', 'c'], 2, 0],
            [$slice->first, $slice->tasks, $slice->keys, $slice->limit, $slice->receivedCount],
        );
        self::assertSame(['b', 'c'], [$slice->key(0), $slice->key(1)]);
    }

    public function testSlicesOfASliceStayInPlace(): void
    {
        $slice = $this->batch(10, range(0, 9))->slice(2, 9)->slice(3, 5);

        self::assertSame([15, [5, 6]], [$slice->first, $slice->tasks]);
    }

    public function testAnEmptySliceIsEmpty(): void
    {
        self::assertSame([], $this->batch(0, [1, 2])->slice(1, 1)->tasks);
    }

    public function testASliceKeepsAttemptAndCrashes(): void
    {
        $again = $this->batch(0, [1, 2, 3])->retry(2, true);
        $slice = $again->slice(0, 1);

        self::assertSame(
            [2, 1, [3], [2], 2],
            [$slice->attempt, $slice->crashes, $slice->tasks, $slice->keys, $slice->first],
        );
    }

    public function testARetryCountsAttemptsAndCrashes(): void
    {
        $again = $this->batch(5, [1, 2])->retry(1, false)->retry(0, true)->retry(0, true);

        self::assertSame([4, 2, 6, [2]], [$again->attempt, $again->crashes, $again->first, $again->tasks]);
    }

    public function testWithoutCodeOfTheSourceTasksHaveNoKey(): void
    {
        self::assertNull($this->batch(0, ['a' => 1], null)->key(0));
    }

    public function testPlainTasksAreEncodedAsOneList(): void
    {
        [$head, $body] = $this->batch(0, [1, 'two', null])->payload();

        self::assertSame(pack('VVC', 7, 1, WorkerProtocol::EAGER), $head);
        self::assertSame([1, 'two', null], unserialize($body));
    }

    public function testTasksThatAreNotPlainAreEncodedSeparately(): void
    {
        $tasks = [
            1,
            new EncodedValue('bytes', WorkerProtocol::STRING),
            new EncodedValue(serialize([2]), WorkerProtocol::SERIALIZED),
        ];
        $batch = new Batch($this->source('code'), 0, $tasks, [0, 1, 2], true, 3);
        [$head, $body] = $batch->payload();

        self::assertSame(pack('VVC', 7, 3, WorkerProtocol::PACKED | WorkerProtocol::EAGER), substr($head, 0, 9));
        self::assertSame(
            [
                \chr(WorkerProtocol::SERIALIZED) . \chr(WorkerProtocol::STRING) . \chr(WorkerProtocol::SERIALIZED),
                [serialize(1), 'bytes', serialize([2])],
            ],
            ValuePacking::decode($head . $body, 9),
        );
    }

    /** @param array<int|string|null> $tasks tasks by key */
    private function batch(int $first, array $tasks, ?string $code = 'code'): Batch
    {
        return new Batch($this->source($code), $first, array_values($tasks), array_keys($tasks), false);
    }

    private function source(?string $code): TaskSource
    {
        $source = self::createStub(TaskSource::class);
        $source->method('code')->willReturn($code);
        $source->method('id')->willReturn(7);
        $source->method('sizing')->willReturn(new BatchSizing()); // a pace without any measurement

        return $source;
    }
}
