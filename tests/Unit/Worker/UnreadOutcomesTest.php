<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\TestCase;
use Spindle\Worker\Internal\Batch;
use Spindle\Worker\Internal\Source;
use Spindle\Worker\Internal\UnreadOutcomes;

final class UnreadOutcomesTest extends TestCase
{
    public function testMapReadsInTheOrderOfTheTasks(): void
    {
        $unread = new UnreadOutcomes(true);
        $unread->add($this->batch(2, 1), 0, 1, 'third', 5);
        $unread->add($this->batch(0, 2), 1, 1, 'second', 6);

        self::assertFalse($unread->hasNext());
        self::assertNull($unread->shift());

        $unread->add($this->batch(0, 2), 0, 1, 'first', 5);

        self::assertTrue($unread->hasNext());
        self::assertSame(['first', 'second', 'third'], self::all($unread));
        self::assertSame(0, $unread->bytes);
    }

    public function testMapUnorderedReadsInTheOrderOfArrival(): void
    {
        $unread = new UnreadOutcomes(false);
        $unread->add($this->batch(2, 1), 0, 1, 'third', 5);
        $unread->add($this->batch(0, 2), 0, 2, 'first two', 9);

        self::assertSame(['third', 'first two'], self::all($unread));
    }

    public function testAChunkHasTheKeysAndTheArgumentBytesOfItsTasks(): void
    {
        $unread = new UnreadOutcomes(true);
        $unread->add($this->batch(0, 3, bytesEach: 1.5), 0, 2, 'results', 7);

        self::assertSame([2, ['key 0', 'key 1'], 'results', 7, 1, 3.0], $unread->shift());
    }

    public function testIsFullFromTheLimitUntilHalfOfItIsRead(): void
    {
        $unread = new UnreadOutcomes(true);
        $quarter = UnreadOutcomes::MAX_BYTES >> 2;
        $reached = [];
        for ($task = 0; $task < 4; ++$task) {
            $reached[] = $unread->add($this->batch($task, 1), 0, 1, '', $quarter);
        }

        self::assertSame([false, false, false, true], $reached);
        self::assertTrue($unread->isFull);
        $unread->shift();
        self::assertTrue($unread->isFull);
        self::assertFalse($unread->add($this->batch(4, 1), 0, 1, '', $quarter - 1), 'full, but below the limit');
        self::assertTrue($unread->isFull);
        $unread->shift();
        $unread->shift();
        self::assertFalse($unread->isFull);
    }

    public function testMapNeedsTheFirstTaskWithoutAnOutcome(): void
    {
        $unread = new UnreadOutcomes(true);
        $unread->add($this->batch(0, 1), 0, 1, '', 1);
        $unread->add($this->batch(3, 1), 0, 1, '', UnreadOutcomes::MAX_BYTES);

        self::assertTrue($unread->needs($this->batch(1, 1)));
        self::assertTrue($unread->needs($this->batch(0, 2)), 'the second task of the batch');
        self::assertFalse($unread->needs($this->batch(2, 1)));

        $unread->add($this->batch(4, 1), 0, 1, '', UnreadOutcomes::MAX_BYTES);
        self::assertFalse($unread->needs($this->batch(1, 1)), 'twice the limit, and the loop has a result to read');
        $unread->shift();
        self::assertTrue($unread->needs($this->batch(1, 1)), 'the loop waits for this task');
    }

    public function testMapUnorderedNeedsNoTask(): void
    {
        $unread = new UnreadOutcomes(false);
        $unread->add($this->batch(1, 1), 0, 1, '', UnreadOutcomes::MAX_BYTES);

        self::assertFalse($unread->needs($this->batch(0, 1)));
    }

    public function testIsEmptyWhenCleared(): void
    {
        $unread = new UnreadOutcomes(true);
        $unread->add($this->batch(0, 1), 0, 1, '', UnreadOutcomes::MAX_BYTES);
        $unread->clear();

        self::assertSame([false, 0, false], [$unread->hasNext(), $unread->bytes, $unread->isFull]);
    }

    /** @return list<mixed> */
    private static function all(UnreadOutcomes $unread): array
    {
        $all = [];
        while (($chunk = $unread->shift()) !== null) {
            $all[] = $chunk[2];
        }

        return $all;
    }

    private function batch(int $first, int $count, float $bytesEach = 0.0): Batch
    {
        $numbers = range($first, $first + $count - 1);
        $keys = array_map(static fn(int $number): string => "key {$number}", $numbers);

        return new Batch(self::createStub(Source::class), $first, $numbers, $keys, false, bytesEach: $bytesEach);
    }
}
