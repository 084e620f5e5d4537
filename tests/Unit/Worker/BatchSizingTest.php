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
        $sizing = new BatchSizing();

        self::assertSame(1, $sizing->size);
        self::assertFalse($sizing->isQuick);
    }

    public function testBatchesOfQuickTasksGrowStepByStep(): void
    {
        $sizing = new BatchSizing();
        $sizes = [];
        for ($i = 0; $i < 6; ++$i) {
            $sizes[] = $size = $sizing->size;
            $sizing->learn($size, $size * 200, 200);
        }

        self::assertSame([1, 8, 64, 512], \array_slice($sizes, 0, 4));
        self::assertSame(4096, $sizes[5]);
        self::assertTrue($sizing->isQuick);
    }

    public function testABatchTakesAboutAMillisecond(): void
    {
        $sizing = new BatchSizing();
        for ($i = 0; $i < 20; ++$i) {
            $size = $sizing->size;
            $sizing->learn($size, $size * 100 * self::MICROSECOND, 100 * self::MICROSECOND);
        }

        self::assertEqualsWithDelta(10, $sizing->size, 1);
    }

    public function testSlowTasksAreSentOneByOne(): void
    {
        $sizing = new BatchSizing();
        $sizing->learn(1, 20 * self::MILLISECOND, 20 * self::MILLISECOND);

        self::assertSame(1, $sizing->size);
        self::assertFalse($sizing->isQuick);
    }

    public function testARareLongTaskAmongManyIsNotTheUsualOne(): void
    {
        $sizing = new BatchSizing();
        for ($i = 0; $i < 10; ++$i) {
            $size = $sizing->size;
            $sizing->learn($size, $size * self::MICROSECOND, self::MICROSECOND);
        }
        $before = $sizing->size;
        $sizing->learn($before, $before * self::MICROSECOND + 5000 * self::MILLISECOND, 5000 * self::MILLISECOND);

        self::assertGreaterThan($before / 2, $sizing->size);
    }

    public function testResultsOfTinyTasksMayWait(): void
    {
        $sizing = new BatchSizing();
        self::assertTrue($sizing->isEager());
        for ($i = 0; $i < 20; ++$i) {
            $size = $sizing->size;
            $sizing->learn($size, $size * self::MICROSECOND, self::MICROSECOND);
        }

        self::assertFalse($sizing->isEager());
    }

    public function testResultsOfLongTasksDoNotWait(): void
    {
        $sizing = new BatchSizing();
        for ($i = 0; $i < 20; ++$i) {
            $sizing->learn($sizing->size, $sizing->size * self::MILLISECOND, self::MILLISECOND);
        }

        self::assertTrue($sizing->isEager());
    }

    public function testABatchWithoutTasksDoesNotChangeTheSize(): void
    {
        $sizing = new BatchSizing();
        $sizing->learn(0, 0, 0);

        self::assertSame(1, $sizing->size);
        self::assertFalse($sizing->isQuick);
    }
}
