<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Internal\GarbageCycles;

use function Amp\delay;

final class GarbageCyclesTest extends TestCase
{
    public function testAWaitInAFinallyBlockOfADestroyedFiberIsNoFailure(): void
    {
        $failures = [];
        EventLoop::setErrorHandler(static function (\Throwable $failure) use (&$failures): void {
            $failures[] = $failure;
        });
        $hasBegun = false;
        $cycle = new \stdClass();
        $cycle->fiber = new \Fiber(static function () use ($cycle, &$hasBegun): void {
            try {
                \Fiber::suspend();
            } finally {
                $hasBegun = isset($cycle->fiber);
                delay(0);
            }
        });
        $cycle->fiber->start();
        unset($cycle);

        try {
            GarbageCycles::collect();
            delay(0);
        } finally {
            EventLoop::setErrorHandler(null);
        }

        self::assertTrue($hasBegun);
        self::assertSame([], $failures);
    }
}
