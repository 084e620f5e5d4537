<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Postgres\Internal\Pool\HoldingFunctions;
use Spindle\Postgres\Internal\Session;

use function Amp\delay;

final class HoldingFunctionsTest extends TestCase
{
    public function testAFunctionHoldsItsConnectionsUntilAllAreReleased(): void
    {
        $holders = new HoldingFunctions();
        $sessions = [self::createStub(Session::class), self::createStub(Session::class)];
        array_map($holders->add(...), $sessions);
        foreach ($sessions as $session) {
            self::assertTrue($holders->includesCurrent());
            $holders->remove($session);
            $holders->remove($session);
        }

        self::assertFalse($holders->includesCurrent());
        self::assertSame(0, $holders->connectionCount);
    }

    public function testALaterFunctionInTheSameFiberHoldsNoConnection(): void
    {
        $holders = new HoldingFunctions();
        $session = self::createStub(Session::class);
        $held = [];
        EventLoop::queue(static function () use ($holders, $session, &$held): void {
            $holders->add($session);
            $held[] = [\Fiber::getCurrent(), $holders->includesCurrent()];
        });
        EventLoop::queue(static function () use ($holders, &$held): void {
            $held[] = [\Fiber::getCurrent(), $holders->includesCurrent()];
        });
        delay(0);
        self::assertSame($held[0][0], $held[1][0]);
        self::assertSame([true, false, false], [$held[0][1], $held[1][1], $holders->includesCurrent()]);
        $holders->remove($session);

        self::assertSame(0, $holders->connectionCount);
    }
}
