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
        $turn->acquire();
        $order = [];
        $futures = [];
        foreach (range(1, 10) as $i) {
            $futures[] = Async::run(static function () use ($turn, $i, &$order): void {
                $turn->acquire();
                $order[] = $i;
                delay(0);
                $turn->release();
            });
        }
        delay(0);
        $turn->release();
        self::assertTrue($turn->isLocked, 'it goes from one to the next');
        foreach ($futures as $future) {
            $future->await();
        }

        self::assertSame(range(1, 10), $order);
        self::assertFalse($turn->isLocked);
    }

    public function testANewcomerWaitsWhileTheMutexIsPassedOn(): void
    {
        $turn = new FairMutex('It is taken');
        $turn->acquire();
        $order = [];
        $first = Async::run(static function () use ($turn, &$order): void {
            $turn->acquire();
            $order[] = 'who waited';
            $turn->release();
        });
        delay(0);
        $turn->release();
        $turn->acquire();
        $order[] = 'who came later';
        $turn->release();
        $first->await();

        self::assertSame(['who waited', 'who came later'], $order);
    }

    public function testAFiberThatWaitsForItselfFails(): void
    {
        $turn = new FairMutex('The connection is busy');
        $places = [
            static fn(\Closure $work): mixed => $work(),
            self::inAFiber(...),
        ];
        foreach ($places as $where) {
            $where(static function () use ($turn): void {
                $turn->acquire();
                try {
                    $turn->acquire();
                    self::fail('It waits');
                } catch (\LogicException $thrown) {
                    self::assertSame('The connection is busy: this fiber would wait for itself', $thrown->getMessage());
                }
                $turn->release();
            });
        }
        self::assertFalse($turn->isLocked);
    }

    public function testAFiberThatHandedItOverMayWaitForIt(): void
    {
        $turn = new FairMutex('It is taken');
        $turn->acquire();
        $turn->handOver();
        $other = Async::run(static fn() => $turn->release());
        $turn->acquire();
        $turn->release();
        $other->await();

        self::assertFalse($turn->isLocked);
    }

    public function testACancelledWaiterLosesNoOtherTurn(): void
    {
        $turn = new FairMutex('It is taken');
        $turn->acquire();
        $source = new DeferredCancellation();
        $cancelled = Async::run(static fn() => $turn->acquire($source->getCancellation()));
        $next = Async::run(static fn() => $turn->acquire());
        delay(0);
        $source->cancel();
        $this->expectException(CancelledException::class);
        try {
            $cancelled->await();
        } finally {
            $turn->release();
            $next->await();
            $turn->release();
            self::assertFalse($turn->isLocked);
        }
    }

    public function testACallThatIsCancelledBeforehandTakesNoConnection(): void
    {
        $turn = new FairMutex('It is taken');
        $source = new DeferredCancellation();
        $source->cancel();
        try {
            $turn->acquire($source->getCancellation());
            self::fail('It is taken');
        } catch (CancelledException) {
            self::assertFalse($turn->isLocked);
        }
    }

    /** @param \Closure(): mixed $work */
    private static function inAFiber(\Closure $work): mixed
    {
        return Async::run($work)->await();
    }
}
