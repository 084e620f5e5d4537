<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Backoff;

final class BackoffTest extends TestCase
{
    public function testADelayIsMultipliedUpToItsMaximum(): void
    {
        $backoff = new Backoff(0.1, 2.0, 0.5, 0.0);

        self::assertSame([0.1, 0.2, 0.4, 0.5, 0.5], array_map($backoff->after(...), [1, 2, 3, 4, 5]));
    }

    public function testAFactorThatGrowsBeyondAllNumbersLeavesTheMaximum(): void
    {
        self::assertSame(60.0, (new Backoff(0.1, 10.0, 60.0, 0.0))->after(10_000));
    }

    public function testNoDelayStaysNone(): void
    {
        self::assertSame(0.0, (new Backoff(0.0, 10.0, 60.0, 0.5))->after(10_000));
    }

    public function testJitterTakesAwayARandomPartOfItsShare(): void
    {
        $backoff = new Backoff(1.0, 1.0, 1.0, 0.4);
        $delays = [$backoff->after(1)];
        for ($i = 0; $i < 500; ++$i) {
            $delays[] = $backoff->after(1);
        }

        self::assertGreaterThanOrEqual(0.6, min($delays));
        self::assertLessThanOrEqual(1.0, max($delays));
        self::assertGreaterThan(0.2, max($delays) - min($delays));
    }

    /** @return iterable<string, array{float, float, float, float}> */
    public static function outOfRange(): iterable
    {
        yield 'a delay below 0' => [-0.1, 1.0, 1.0, 0.0];
        yield 'a factor below 1' => [0.1, 0.9, 1.0, 0.0];
        yield 'a maximum below 0' => [0.1, 1.0, -1.0, 0.0];
        yield 'a jitter below 0' => [0.1, 1.0, 1.0, -0.1];
        yield 'a jitter above 1' => [0.1, 1.0, 1.0, 1.1];
        yield 'a delay that is no number' => [\NAN, 1.0, 1.0, 0.0];
        yield 'a jitter that is no number' => [0.1, 1.0, 1.0, \NAN];
    }

    #[DataProvider('outOfRange')]
    public function testANumberOutOfItsRangeIsRefused(float $delay, float $factor, float $maxDelay, float $jitter): void
    {
        $this->expectException(\ValueError::class);
        new Backoff($delay, $factor, $maxDelay, $jitter);
    }
}
