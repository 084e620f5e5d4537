<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres\Types;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Range;

final class RangeTest extends TestCase
{
    public function testARangeIncludesOnlyItsLowerBoundByDefault(): void
    {
        $range = new Range(1, 5);

        self::assertSame(
            [1, 5, true, false, false],
            [$range->lower, $range->upper, $range->lowerInclusive, $range->upperInclusive, $range->empty],
        );
    }

    public function testAMissingBoundIsNotInclusive(): void
    {
        self::assertEquals(new Range(null, null, false, false), new Range(null, null, true, true));
    }

    public function testAnEmptyRangeDiffersFromAnUnboundedRange(): void
    {
        self::assertEquals(Range::empty(), new Range(1, 2, empty: true));
        self::assertNotEquals(Range::empty(), new Range());
        self::assertNull(Range::empty()->lower);
        self::assertTrue(Range::empty()->empty);
    }
}
