<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\TestCase;
use Spindle\Worker\Internal\Batch;
use Spindle\Worker\Internal\OutcomeQueue;
use Spindle\Worker\Internal\TaskSource;

final class OutcomeQueueTest extends TestCase
{
    public function testMapReadsInTheOrderOfTheTasks(): void
    {
        $queue = new OutcomeQueue(true);
        $queue->add($this->batch(2, 1), 0, 1, 'third', 5);
        $queue->add($this->batch(0, 2), 1, 1, 'second', 6);

        self::assertFalse($queue->hasNext());
        self::assertNull($queue->shift());

        $queue->add($this->batch(0, 2), 0, 1, 'first', 5);

        self::assertTrue($queue->hasNext());
        self::assertSame(['first', 'second', 'third'], self::all($queue));
        self::assertSame(0, $queue->bytes);
    }

    public function testMapUnorderedReadsInTheOrderOfArrival(): void
    {
        $queue = new OutcomeQueue(false);
        $queue->add($this->batch(2, 1), 0, 1, 'third', 5);
        $queue->add($this->batch(0, 2), 0, 2, 'first two', 9);

        self::assertSame(['third', 'first two'], self::all($queue));
    }

    public function testAChunkHasTheKeysAndTheArgumentBytesOfItsTasks(): void
    {
        $queue = new OutcomeQueue(true);
        $queue->add($this->batch(0, 3, bytesEach: 1.5), 0, 2, 'results', 7);

        self::assertSame([2, ['key 0', 'key 1'], 'results', 7, 1, 3.0], $queue->shift());
    }

    public function testIsFullFromTheLimitUntilHalfOfItIsRead(): void
    {
        $queue = new OutcomeQueue(true);
        $quarter = OutcomeQueue::MAX_BYTES >> 2;
        $reached = [];
        for ($task = 0; $task < 4; ++$task) {
            $reached[] = $queue->add($this->batch($task, 1), 0, 1, '', $quarter);
        }

        self::assertSame([false, false, false, true], $reached);
        self::assertTrue($queue->isFull);
        $queue->shift();
        self::assertTrue($queue->isFull);
        self::assertFalse($queue->add($this->batch(4, 1), 0, 1, '', $quarter - 1), 'full, but below the limit');
        self::assertTrue($queue->isFull);
        $queue->shift();
        $queue->shift();
        self::assertFalse($queue->isFull);
    }

    public function testMapNeedsTheFirstTaskWithoutAnOutcome(): void
    {
        $queue = new OutcomeQueue(true);
        $queue->add($this->batch(0, 1), 0, 1, '', 1);
        $queue->add($this->batch(3, 1), 0, 1, '', OutcomeQueue::MAX_BYTES);

        self::assertTrue($queue->needs($this->batch(1, 1)));
        self::assertTrue($queue->needs($this->batch(0, 2)), 'the second task of the batch');
        self::assertFalse($queue->needs($this->batch(2, 1)));

        $queue->add($this->batch(4, 1), 0, 1, '', OutcomeQueue::MAX_BYTES);
        self::assertFalse($queue->needs($this->batch(1, 1)), 'twice the limit, and the loop has a result to read');
        self::assertNull($queue->firstOpen(), 'so no extra worker is started for this task');
        $queue->shift();
        self::assertSame(1, $queue->firstOpen());
        self::assertTrue($queue->needs($this->batch(1, 1)), 'the loop waits for this task');
    }

    public function testMapUnorderedNeedsNoTask(): void
    {
        $queue = new OutcomeQueue(false);
        $queue->add($this->batch(1, 1), 0, 1, '', OutcomeQueue::MAX_BYTES);

        self::assertFalse($queue->needs($this->batch(0, 1)));
    }

    public function testIsEmptyWhenCleared(): void
    {
        $queue = new OutcomeQueue(true);
        $queue->add($this->batch(0, 1), 0, 1, '', OutcomeQueue::MAX_BYTES);
        $queue->clear();

        self::assertSame([false, 0, false], [$queue->hasNext(), $queue->bytes, $queue->isFull]);
    }

    /** @return list<mixed> */
    private static function all(OutcomeQueue $queue): array
    {
        $all = [];
        while (($chunk = $queue->shift()) !== null) {
            $all[] = $chunk[2];
        }

        return $all;
    }

    private function batch(int $first, int $count, float $bytesEach = 0.0): Batch
    {
        $numbers = range($first, $first + $count - 1);
        $keys = array_map(static fn(int $number): string => "key {$number}", $numbers);

        return new Batch(self::createStub(TaskSource::class), $first, $numbers, $keys, false, bytesEach: $bytesEach);
    }
}
