<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\FairMutex;
use Spindle\Tests\Async;

use function Amp\delay;

final class FairMutexTest extends TestCase
{
    public function testItIsTakenInTheOrderOfComing(): void
    {
        $turn = new FairMutex('It is taken');
        $turn->take();
        $order = [];
        $futures = [];
        foreach (range(1, 10) as $i) {
            $futures[] = Async::run(static function () use ($turn, $i, &$order): void {
                $turn->take();
                $order[] = $i;
                delay(0);
                $turn->give();
            });
        }
        delay(0);
        $turn->give();
        self::assertTrue($turn->taken, 'it goes from one to the next');
        foreach ($futures as $future) {
            $future->await();
        }

        self::assertSame(range(1, 10), $order);
        self::assertFalse($turn->taken);
    }

    public function testWhoComesWhileItChangesHandsWaits(): void
    {
        $turn = new FairMutex('It is taken');
        $turn->take();
        $order = [];
        $first = Async::run(static function () use ($turn, &$order): void {
            $turn->take();
            $order[] = 'who waited';
            $turn->give();
        });
        delay(0);
        $turn->give();
        $turn->take();
        $order[] = 'who came later';
        $turn->give();
        $first->await();

        self::assertSame(['who waited', 'who came later'], $order);
    }

    public function testWhoWaitsForItselfIsToldSo(): void
    {
        $turn = new FairMutex('The connection is busy');
        $places = [
            static fn(\Closure $work): mixed => $work(),
            self::inAFiber(...),
        ];
        foreach ($places as $where) {
            $where(static function () use ($turn): void {
                $turn->take();
                try {
                    $turn->take();
                    self::fail('It waits');
                } catch (\LogicException $thrown) {
                    self::assertSame('The connection is busy: this fiber waits for itself', $thrown->getMessage());
                }
                $turn->give();
            });
        }
        self::assertFalse($turn->taken);
    }

    public function testWhoHandedItOverMayWaitForIt(): void
    {
        $turn = new FairMutex('It is taken');
        $turn->take();
        $turn->handOver();
        $other = Async::run(static fn() => $turn->give());
        $turn->take();
        $turn->give();
        $other->await();

        self::assertFalse($turn->taken);
    }

    public function testWhoIsCancelledLosesNobodyElsesTurn(): void
    {
        $turn = new FairMutex('It is taken');
        $turn->take();
        $source = new DeferredCancellation();
        $cancelled = Async::run(static fn() => $turn->take($source->getCancellation()));
        $next = Async::run(static fn() => $turn->take());
        delay(0);
        $source->cancel();
        $this->expectException(CancelledException::class);
        try {
            $cancelled->await();
        } finally {
            $turn->give();
            $next->await();
            $turn->give();
            self::assertFalse($turn->taken);
        }
    }

    public function testWhoIsCancelledBeforehandTakesNothing(): void
    {
        $turn = new FairMutex('It is taken');
        $source = new DeferredCancellation();
        $source->cancel();
        try {
            $turn->take($source->getCancellation());
            self::fail('It is taken');
        } catch (CancelledException) {
            self::assertFalse($turn->taken);
        }
    }

    /** @param \Closure(): mixed $work */
    private static function inAFiber(\Closure $work): mixed
    {
        return Async::run($work)->await();
    }
}
