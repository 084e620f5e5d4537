<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Async;

use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Internal\Async\OneShot;

final class OneShotTest extends TestCase
{
    public function testTheResultMayComeBeforeTheWait(): void
    {
        /** @var OneShot<int> $result */
        $result = new OneShot();
        self::assertFalse($result->isCompleted);
        $result->complete(7);

        self::assertTrue($result->isCompleted);
        self::assertSame(7, $result->await());
    }

    public function testTheFiberWaitsForTheResult(): void
    {
        /** @var OneShot<string> $result */
        $result = new OneShot();
        EventLoop::defer(static fn() => $result->complete('late'));

        self::assertSame('late', $result->await());
    }

    public function testAFailureIsThrown(): void
    {
        /** @var OneShot<string> $result */
        $result = new OneShot();
        EventLoop::defer(static fn() => $result->fail(new \RuntimeException('the reason')));

        $this->expectExceptionMessage('the reason');
        $result->await();
    }
}
