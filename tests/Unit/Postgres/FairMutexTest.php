<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Postgres\Internal\FairMutex;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;

use function Amp\delay;
use function Amp\Future\awaitAll;

final class FairMutexTest extends TestCase
{
    use CatchesThrown;

    public function testTheMutexIsAcquiredInOrderOfArrival(): void
    {
        $mutex = new FairMutex('The connection is busy');
        $mutex->acquire();
        $order = [];
        $futures = [];
        foreach (range(1, 10) as $i) {
            $futures[] = Async::run(static function () use ($mutex, $i, &$order): void {
                $mutex->acquire();
                $order[] = $i;
                delay(0);
                $mutex->release();
            });
        }
        delay(0);
        $mutex->release();
        self::assertTrue($mutex->isLocked, 'the mutex is passed on without being unlocked');
        foreach ($futures as $future) {
            $future->await();
        }

        self::assertSame(range(1, 10), $order);
        self::assertFalse($mutex->isLocked);
    }

    public function testALaterFiberCanNotOvertakeAWaitingFiber(): void
    {
        $mutex = new FairMutex('The connection is busy');
        $mutex->acquire();
        $order = [];
        $first = Async::run(static function () use ($mutex, &$order): void {
            $mutex->acquire();
            $order[] = 'waiting fiber';
            $mutex->release();
        });
        delay(0);
        $mutex->release();
        $mutex->acquire();
        $order[] = 'later fiber';
        $mutex->release();
        $first->await();

        self::assertSame(['waiting fiber', 'later fiber'], $order);
    }

    public function testAFiberThatWaitsForItselfFails(): void
    {
        $mutex = new FairMutex('The connection is busy', 'Use a pool');
        $places = [
            static fn(\Closure $work): mixed => $work(),
            self::inAFiber(...),
        ];
        foreach ($places as $where) {
            $where(static function () use ($mutex): void {
                $mutex->acquire();
                $thrown = self::thrown(\LogicException::class, static fn() => $mutex->acquire());
                self::assertSame(
                    'The connection is busy, so this fiber would wait for itself. Use a pool',
                    $thrown->getMessage(),
                );
                $mutex->release();
            });
        }
        self::assertFalse($mutex->isLocked);
    }

    public function testAForgottenHolderMayWaitForTheMutex(): void
    {
        $mutex = new FairMutex('The connection is busy');
        $mutex->acquire();
        $mutex->forgetHolder();
        $other = Async::run(static fn() => $mutex->release());
        $mutex->acquire();
        $mutex->release();
        $other->await();

        self::assertFalse($mutex->isLocked);
    }

    public function testMainMayWaitForTheMutexOfAFiberThatIsGone(): void
    {
        $mutex = new FairMutex('The connection is busy');
        $fiber = new \Fiber(static fn() => $mutex->acquire());
        $fiber->start();
        unset($fiber);

        self::assertFalse($mutex->isMine());
    }

    public function testALaterFunctionInTheFiberOfTheHolderMayWaitForTheMutex(): void
    {
        $mutex = new FairMutex('The connection is busy');
        /** @var array<string, \Fiber<mixed, mixed, mixed, mixed>|null> $fibers */
        $fibers = [];
        $isMine = null;
        EventLoop::queue(static function () use ($mutex, &$fibers): void {
            $mutex->acquire();
            $fibers['holder'] = \Fiber::getCurrent();
        });
        EventLoop::queue(static function () use ($mutex, &$fibers, &$isMine): void {
            $fibers['later'] = \Fiber::getCurrent();
            $isMine = $mutex->isMine();
        });
        delay(0);

        self::assertSame($fibers['holder'], $fibers['later']);
        self::assertFalse($isMine);
    }

    public function testACancelledWaiterDoesNotBlockTheNextOne(): void
    {
        $mutex = new FairMutex('The connection is busy');
        $mutex->acquire();
        $source = new DeferredCancellation();
        $cancelled = Async::run(static fn() => $mutex->acquire($source->getCancellation()));
        $next = Async::run(static fn() => $mutex->acquire());
        delay(0);
        $source->cancel();
        $this->expectException(CancelledException::class);
        try {
            $cancelled->await();
        } finally {
            $mutex->release();
            $next->await();
            $mutex->release();
            self::assertFalse($mutex->isLocked);
        }
    }

    public function testTheEndFailsTheWaitingFibersAndLeavesTheMutexToItsHolder(): void
    {
        $mutex = new FairMutex('The connection is busy');
        $mutex->acquire();
        $futures = array_map(static fn(): Future => Async::run($mutex->acquire(...)), range(1, 3));
        delay(0);
        $mutex->release();
        $mutex->end(new \RuntimeException('the end'));
        $mutex->end(new \RuntimeException('a later end'));
        $futures[] = Async::run($mutex->acquire(...));
        [$failures] = awaitAll($futures);
        self::assertTrue($mutex->isLocked, 'the first fiber has got the mutex before the end');
        $mutex->release();

        self::assertFalse($mutex->isLocked);
        self::assertSame(
            [1 => 'the end', 2 => 'the end', 3 => 'the end'],
            array_map(static fn(\Throwable $failure): string => $failure->getMessage(), $failures),
        );
    }

    public function testACallThatIsCancelledBeforehandTakesNoConnection(): void
    {
        $mutex = new FairMutex('The connection is busy');
        $source = new DeferredCancellation();
        $source->cancel();
        self::thrown(CancelledException::class, static fn() => $mutex->acquire($source->getCancellation()));
        self::assertFalse($mutex->isLocked);
    }

    /** @param \Closure(): mixed $work */
    private static function inAFiber(\Closure $work): mixed
    {
        return Async::run($work)->await();
    }
}
