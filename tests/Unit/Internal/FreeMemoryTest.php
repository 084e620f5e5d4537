<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\TestCase;
use Spindle\Internal\FreeMemory;

final class FreeMemoryTest extends TestCase
{
    private const MEGABYTE = 1 << 20;

    public function testAnEighthOfTheLimitIsReserved(): void
    {
        $memory = self::usedTo(7 / 8);
        $half = self::usedTo(1 / 2);

        self::assertTrue($memory->allows(0));
        self::assertFalse($memory->allows(self::MEGABYTE));
        self::assertTrue($half->allows(self::MEGABYTE));
        self::assertFalse($half->allows(memory_get_usage(true)));
    }

    public function testSmallDataMayUseTheReserve(): void
    {
        $memory = self::usedTo(15 / 16);
        $free = intdiv(memory_get_usage(true), 15);

        self::assertFalse($memory->allowsPart(self::MEGABYTE, self::MEGABYTE));
        self::assertFalse($memory->allowsPart(0, intdiv($free, 10)));
        self::assertTrue($memory->allowsPart(0, intdiv($free, 20)));
        self::assertTrue($memory->allowsPart(0, 0));
    }

    public function testShortPiecesMayUseTheGapsBetweenOtherValues(): void
    {
        $values = array_map(static fn(): string => str_repeat('x', 100_000), range(1, 600));
        $values = array_filter($values, static fn(int $index): bool => $index % 10 === 0, \ARRAY_FILTER_USE_KEY);
        $memory = self::usedTo(0.9);

        self::assertFalse($memory->allows(65_536));
        self::assertTrue($memory->allowsPart(65_536, 20 * self::MEGABYTE));
        self::assertFalse($memory->allowsPart(self::MEGABYTE, 20 * self::MEGABYTE));
        self::assertFalse(self::usedTo(0.97)->allowsPart(65_536, 20 * self::MEGABYTE));
        self::assertCount(60, $values);
    }

    public function testWithoutALimitThereIsMemory(): void
    {
        self::assertTrue((new FreeMemory(-1))->allows(1 << 50));
        self::assertTrue((new FreeMemory(-1))->allowsPart(1 << 50, 1 << 50));
    }

    /** Returns an object for the limit of which this process uses a share. */
    private static function usedTo(float $share): FreeMemory
    {
        gc_mem_caches();

        return new FreeMemory((int) ceil(memory_get_usage(true) / $share));
    }
}
