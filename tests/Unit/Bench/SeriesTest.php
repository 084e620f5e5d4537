<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Bench;

use PHPUnit\Framework\TestCase;
use Spindle\Bench\Support\Series;
use Spindle\Bench\Support\Statistics;

final class SeriesTest extends TestCase
{
    public function testADifferenceIsTakenRoundByRound(): void
    {
        self::assertEquals(Statistics::of([1.0, 1.0, 2.0]), self::of(3.0, 11.0, 6.0)->above(self::of(2.0, 10.0, 4.0)));
    }

    public function testAFailureLeavesItsRoundOutAndIsTold(): void
    {
        $series = new Series('one', static fn(): float => throw new \RuntimeException('it ended with 1'), '500 MB');
        $series->measure(1);

        self::assertNull($series->statistics());
        self::assertSame(['one, 500 MB: it ended with 1'], $series->problems());
    }

    public function testTheSameProblemIsToldOnce(): void
    {
        $series = Series::constant('one', 1.0);
        $series->note('wrong');
        $series->note('wrong');

        self::assertSame(['one: wrong'], $series->problems());
    }

    public function testRawFiguresHaveAMedianWhereTheyAreNumbers(): void
    {
        $series = Series::constant('one', 1.0);
        foreach ([3, null, 1, 2.0] as $cpu) {
            $series->record(['cpu' => $cpu]);
        }

        self::assertSame(2.0, $series->medianOf('cpu'));
        self::assertNull($series->medianOf('peak'));
    }

    /** {@see \Spindle\Bench\Support\Report::write()} replaces infinite figures in arrays, because JSON has none. */
    public function testItsDataHasNoObjects(): void
    {
        $data = Series::constant('one', \INF)->toArray();
        $objects = 0;
        array_walk_recursive($data, static function (mixed $value) use (&$objects): void {
            $objects += (int) \is_object($value);
        });

        self::assertSame(0, $objects);
    }

    private static function of(float ...$values): Series
    {
        $series = new Series('', static function () use (&$values): float {
            return array_shift($values) ?? 0.0;
        });
        foreach (array_keys($values) as $round) {
            $series->measure((int) $round);
        }

        return $series;
    }
}
