<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Internal\GarbageCycles;

use function Amp\delay;

final class GarbageCyclesTest extends TestCase
{
    /** @var list<string> */
    private array $failures = [];

    protected function setUp(): void
    {
        EventLoop::setErrorHandler(function (\Throwable $failure): void {
            $this->failures[] = $failure->getMessage();
        });
    }

    protected function tearDown(): void
    {
        EventLoop::setErrorHandler(null);
    }

    public function testAWaitInAFinallyBlockOfADestroyedFiberIsNoFailure(): void
    {
        $hasBegun = false;
        self::dropWaitingFiber($hasBegun);
        GarbageCycles::collect(0.0);
        delay(0);

        self::assertTrue($hasBegun);
        self::assertSame([], $this->failures);
    }

    public function testAnExceptionBeforeSuchAWaitIsReported(): void
    {
        $cycle = new class {
            public ?self $self = null;

            public function __destruct()
            {
                throw new \DomainException('data is lost');
            }
        };
        $cycle->self = $cycle;
        unset($cycle);
        $hasBegun = false;
        self::dropWaitingFiber($hasBegun);
        GarbageCycles::collect(0.0);
        delay(0);

        self::assertTrue($hasBegun);
        self::assertSame(['data is lost'], $this->failures);
    }

    private static function dropWaitingFiber(bool &$hasBegun): void
    {
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
    }
}
