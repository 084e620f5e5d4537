<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\TestCase;
use Spindle\Worker\Internal\BatchSizing;

final class BatchSizingTest extends TestCase
{
    private const MICROSECOND = 1000;
    private const MILLISECOND = 1_000_000;

    public function testTheFirstBatchIsOneTask(): void
    {
        $pace = new BatchSizing();

        self::assertSame(1, $pace->size());
        self::assertFalse($pace->isQuick());
    }

    public function testBatchesOfQuickTasksGrowStepByStep(): void
    {
        $pace = new BatchSizing();
        $sizes = [];
        for ($i = 0; $i < 6; ++$i) {
            $sizes[] = $size = $pace->size();
            $pace->learn($size, $size * 200, 200);
        }

        self::assertSame([1, 8, 64, 512], \array_slice($sizes, 0, 4));
        self::assertSame(4096, $sizes[5]);
        self::assertTrue($pace->isQuick());
    }

    public function testABatchTakesAboutAMillisecond(): void
    {
        $pace = new BatchSizing();
        for ($i = 0; $i < 20; ++$i) {
            $size = $pace->size();
            $pace->learn($size, $size * 100 * self::MICROSECOND, 100 * self::MICROSECOND);
        }

        self::assertEqualsWithDelta(10, $pace->size(), 1);
    }

    public function testSlowTasksGoOneByOne(): void
    {
        $pace = new BatchSizing();
        $pace->learn(1, 20 * self::MILLISECOND, 20 * self::MILLISECOND);

        self::assertSame(1, $pace->size());
        self::assertFalse($pace->isQuick());
    }

    public function testARareLongTaskAmongManyIsNotTheUsualOne(): void
    {
        $pace = new BatchSizing();
        for ($i = 0; $i < 10; ++$i) {
            $size = $pace->size();
            $pace->learn($size, $size * self::MICROSECOND, self::MICROSECOND);
        }
        $before = $pace->size();
        $pace->learn($before, $before * self::MICROSECOND + 5000 * self::MILLISECOND, 5000 * self::MILLISECOND);

        self::assertGreaterThan($before / 2, $pace->size());
    }

    public function testResultsOfTasksThatAreKnownToBeTinyMayWait(): void
    {
        $pace = new BatchSizing();
        self::assertTrue($pace->isEager());
        for ($i = 0; $i < 20; ++$i) {
            $size = $pace->size();
            $pace->learn($size, $size * self::MICROSECOND, self::MICROSECOND);
        }

        self::assertFalse($pace->isEager());
    }

    public function testResultsOfLongTasksDoNot(): void
    {
        $pace = new BatchSizing();
        for ($i = 0; $i < 20; ++$i) {
            $pace->learn($pace->size(), $pace->size() * self::MILLISECOND, self::MILLISECOND);
        }

        self::assertTrue($pace->isEager());
    }

    public function testNothingIsLearntOfNothing(): void
    {
        $pace = new BatchSizing();
        $pace->learn(0, 0, 0);

        self::assertSame(1, $pace->size());
        self::assertFalse($pace->isQuick());
    }
}
