<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Bench;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Bench\Support\Statistics;

final class QuartilesTest extends TestCase
{
    /** @return iterable<string, array{non-empty-list<int|float>, float, float}> quartiles of R's quantile() */
    public static function values(): iterable
    {
        yield 'one value' => [[4], 4.0, 4.0];
        yield 'two' => [[1.0, 2.0], 1.25, 1.75];
        yield 'three' => [[1, 2, 4], 1.5, 3.0];
        yield 'five, in any order' => [[50, 10, 40, 20, 30], 20.0, 40.0];
        yield 'ten' => [range(1, 10), 3.25, 7.75];
        yield 'all the same' => [[0.5, 0.5, 0.5, 0.5], 0.5, 0.5];
    }

    /** @param non-empty-list<int|float> $values */
    #[DataProvider('values')]
    public function testQuartilesLieBetweenTheNearestValues(array $values, float $lower, float $upper): void
    {
        $statistics = Statistics::of($values);

        self::assertSame([$lower, $upper], [$statistics->lower, $statistics->upper]);
    }

    public function testQuartilesOfRatiosAreThoseOfTheRoundsOwnRatios(): void
    {
        // The ratios are 1, 2, 3, 4 and 5, although both sides vary.
        $ratios = Statistics::ofRatios([10.0, 2.0, 300.0, 8.0, 50.0], [10.0, 1.0, 100.0, 2.0, 10.0]);

        self::assertSame([2.0, 3.0, 4.0], [$ratios?->lower, $ratios?->median, $ratios?->upper]);
    }
}
