<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Server;

use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Server\LoopLag;
use Spindle\Tests\LeavesNothing;

use function Amp\delay;

final class LoopLagTest extends TestCase
{
    use LeavesNothing;

    private int $now = 1_000_000_000_000;

    public function testABlockThatLastsUntilTheStopIsMeasured(): void
    {
        $lag = $this->lag();
        $this->block($lag, 2.5);

        self::assertSame([2.0, 2.0], [$lag->last(), $lag->max()]);
    }

    public function testAStopBeforeTheNextTimerIsNotMeasured(): void
    {
        $lag = $this->lag();
        $this->block($lag, 2.5);
        $this->block($lag, 0.2);

        self::assertSame([2.0, 2.0], [$lag->last(), $lag->max()]);
    }

    public function testMeasurementsExpireAfterAMinuteEvenWithoutConnections(): void
    {
        $lag = $this->lag();
        $this->block($lag, 2.5);
        $this->pass(59.0);
        self::assertSame([2.0, 2.0], [$lag->last(), $lag->max()]);
        $this->pass(2.0);

        self::assertSame([0.0, 0.0], [$lag->last(), $lag->max()]);
    }

    public function testTheMaximumIsThatOfTheLastMinute(): void
    {
        $lag = $this->lag();
        foreach ([3.5, 1.5, 2.5] as $seconds) {
            $this->block($lag, $seconds);
            $this->pass(18.0);
        }
        self::assertSame([2.0, 3.0], [$lag->last(), $lag->max()]);
        $this->pass(16.0);
        self::assertSame(2.0, $lag->max());
        $this->pass(30.0);
        self::assertSame(0.0, $lag->max());
    }

    public function testATimerMeasures(): void
    {
        $lag = new LoopLag();
        $lag->start();
        usleep(600_000); // blocks the loop for longer than the interval of 0.5 s
        delay(0.01);
        $lag->stop();

        self::assertEqualsWithDelta(0.1, $lag->max(), 0.09);
    }

    private function lag(): LoopLag
    {
        return new LoopLag(fn(): int => $this->now);
    }

    private function block(LoopLag $lag, float $seconds): void
    {
        $lag->start();
        $this->pass($seconds);
        $lag->stop();
    }

    private function pass(float $seconds): void
    {
        $this->now += (int) ($seconds * 1e9);
    }
}
