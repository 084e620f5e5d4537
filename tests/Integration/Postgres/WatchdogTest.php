<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\Postgres\Watchdog;

use function Amp\delay;

final class WatchdogTest extends TestCase
{
    use LeavesNothing;

    public function testItSeesWhatBlocksTheLoop(): void
    {
        $gap = Watchdog::during(static function (): void {
            delay(0.01);
            usleep(150_000);
            delay(0.01);
        });

        self::assertGreaterThanOrEqual(0.15, $gap);
    }

    public function testItSeesWhatBlocksWithoutEverTurningTheLoop(): void
    {
        self::assertGreaterThanOrEqual(0.05, Watchdog::during(static fn() => usleep(50_000)));
    }

    public function testWaitingIsNotBlocking(): void
    {
        $gap = \INF;
        for ($i = 0; $i < 5 && $gap >= 0.15; ++$i) { // because other processes may keep the machine busy
            $gap = min($gap, Watchdog::during(static fn() => delay(0.2)));
        }

        self::assertLessThan(0.15, $gap);
    }

    public function testItEndsWithWorkThatFails(): void
    {
        $this->expectExceptionMessage('the work has failed');
        Watchdog::during(static fn() => throw new \RuntimeException('the work has failed'));
    }
}
