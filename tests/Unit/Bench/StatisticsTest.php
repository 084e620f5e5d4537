<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Bench;

use PHPUnit\Framework\TestCase;
use Spindle\Bench\Support\Statistics;

final class StatisticsTest extends TestCase
{
    public function testTheMedianOfAnOddNumberOfValuesIsTheMiddleOne(): void
    {
        self::assertSame(3.0, Statistics::of([5, 1, 3])->median);
    }

    public function testTheMedianOfAnEvenNumberOfValuesLiesBetweenTheMiddleTwo(): void
    {
        self::assertSame(2.5, Statistics::of([4.0, 1.0, 3.0, 2.0])->median);
    }

    public function testTheExtremesAndTheNumberOfValuesAreKept(): void
    {
        $statistics = Statistics::of([7 => 2.0, 3 => 9.0, 1 => 4.0]);

        self::assertSame([2.0, 9.0, 3], [$statistics->min, $statistics->max, $statistics->count]);
    }

    public function testOneValueIsItsOwnMedianWithoutASpread(): void
    {
        $statistics = Statistics::of([4]);

        self::assertSame([4.0, 0.0], [$statistics->median, $statistics->spread()]);
        self::assertFalse($statistics->isWide());
    }

    public function testNoValuesHaveNoStatistics(): void
    {
        $this->expectException(\ValueError::class);
        Statistics::of([]);
    }

    public function testTheSpreadIsAShareOfTheMedian(): void
    {
        self::assertSame(0.5, Statistics::of([8, 10, 13])->spread());
    }

    public function testASpreadOfMoreThanAFifthIsWide(): void
    {
        self::assertFalse(Statistics::of([90.0, 100.0, 110.0])->isWide());
        self::assertTrue(Statistics::of([90.0, 100.0, 111.0])->isWide());
    }

    public function testARatioIsTakenRoundByRound(): void
    {
        // The machine ran at half speed after the first round, but the ratio was constant.
        $ratios = Statistics::ofRatios([1 => 200.0, 2 => 100.0, 3 => 100.0], [1 => 400.0, 2 => 200.0, 3 => 200.0]);

        self::assertEquals(Statistics::of([0.5, 0.5, 0.5]), $ratios);
    }

    public function testARoundThatOneSideLacksDoesNotCount(): void
    {
        self::assertEquals(Statistics::of([0.25]), Statistics::ofRatios([1 => 9.0, 2 => 1.0], [2 => 4.0, 3 => 1.0]));
    }

    public function testWithoutACommonRoundThereIsNoRatio(): void
    {
        self::assertNull(Statistics::ofRatios([1 => 9.0], [2 => 4.0]));
        self::assertNull(Statistics::ofRatios([1 => 9.0], [1 => 0.0]));
    }
}
