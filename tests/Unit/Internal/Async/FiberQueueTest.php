<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Async;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Tests\CatchesThrown;

use function Amp\async;
use function Amp\delay;
use function Amp\Future\awaitAll;

final class FiberQueueTest extends TestCase
{
    use CatchesThrown;

    public function testFibersAreWokenInOrderOfArrival(): void
    {
        $queue = new FiberQueue();
        /** @var \SplQueue<string> $woken */
        $woken = new \SplQueue();
        $futures = [];
        foreach (['first', 'second', 'third'] as $name) {
            $futures[] = async(static function () use ($queue, $name, $woken): void {
                $queue->wait();
                $woken->enqueue($name);
            });
        }
        delay(0);
        self::assertTrue($queue->wakeFirst());
        delay(0);
        self::assertSame(['first'], iterator_to_array($woken));
        $queue->wakeAll();
        awaitAll($futures);

        self::assertSame(['first', 'second', 'third'], iterator_to_array($woken));
        self::assertFalse($queue->wakeFirst());
    }

    public function testAFiberThatWaitsAgainKeepsItsPlace(): void
    {
        $queue = new FiberQueue();
        /** @var \SplQueue<string> $woken */
        $woken = new \SplQueue();
        $futures = [];
        foreach (['first' => 0, 'second' => 2, 'third' => 1, 'fourth' => 0] as $name => $furtherWaits) {
            $futures[] = async(static function () use ($queue, $name, $furtherWaits, $woken): void {
                $place = $queue->wait();
                for (; $furtherWaits > 0; --$furtherWaits) {
                    $place = $queue->wait(place: $place);
                }
                $woken->enqueue($name);
            });
        }
        delay(0);
        for ($i = 0; $i < 3; ++$i) { // wakes the first three, of which two wait again
            $queue->wakeFirst();
        }
        delay(0);
        self::assertSame(['first'], iterator_to_array($woken));
        while ($queue->wakeFirst()) {
            delay(0);
        }
        awaitAll($futures);

        self::assertSame(['first', 'second', 'third', 'fourth'], iterator_to_array($woken));
    }

    public function testTheTracesOfManyWokenFibersStayShort(): void
    {
        $queue = new FiberQueue();
        $frames = [];
        $futures = [];
        for ($i = 0; $i < 300; ++$i) {
            $futures[] = async(static function () use ($queue, &$frames): void {
                $queue->wait();
                $frames[] = \count((new \Exception())->getTrace());
            });
        }
        delay(0);
        $queue->wakeAll();
        awaitAll($futures);

        self::assertCount(300, $frames);
        self::assertLessThan(2 * $frames[63], max($frames)); // the first 64 fibers are resumed within each other
    }

    public function testACancelledFiberIsNotWokenInPlaceOfAnother(): void
    {
        $queue = new FiberQueue();
        $cancellation = new DeferredCancellation();
        $cancelled = async($queue->wait(...), $cancellation->getCancellation());
        $other = async($queue->wait(...));
        delay(0);
        $cancellation->cancel();
        EventLoop::queue($queue->wakeFirst(...)); // called after the cancellation, and before its fiber resumes
        $other->await(new TimeoutCancellation(1.0));

        $this->expectException(CancelledException::class);
        $cancelled->await();
    }

    public function testOnlyACancelledWaitForAnEndKills(): void
    {
        $queue = new FiberQueue();
        /** @var \SplQueue<string> $kills */
        $kills = new \SplQueue();
        $kill = static function () use ($kills): void {
            $kills->enqueue('killed');
        };
        $ended = async($queue->waitOrKill(...), null, $kill);
        delay(0);
        $queue->wakeAll();
        $ended->await();
        self::assertCount(0, $kills);
        $cancellation = new DeferredCancellation();
        $cancelled = async($queue->waitOrKill(...), $cancellation->getCancellation(), $kill);
        delay(0);
        $cancellation->cancel();
        self::thrown(CancelledException::class, static fn() => $cancelled->await());
        self::assertCount(1, $kills);
    }

    public function testAFailureReachesAllFibers(): void
    {
        $queue = new FiberQueue();
        $futures = [async($queue->wait(...)), async($queue->wait(...))];
        delay(0);
        $queue->failAll(new \RuntimeException('the reason'));
        [$failures] = awaitAll($futures);

        self::assertSame(
            ['the reason', 'the reason'],
            array_map(static fn(\Throwable $failure): string => $failure->getMessage(), array_values($failures)),
        );
    }

    public function testAFiberThatFailedWasNotWoken(): void
    {
        $queue = new FiberQueue();
        $passedOn = 0;
        $passOn = static function () use (&$passedOn): void {
            ++$passedOn;
        };
        $wait = static fn() => $queue->wait(passWakeOn: $passOn);
        $futures = [async($wait), async($wait)];
        delay(0);
        $queue->wakeFirst();
        $queue->failAll(new \RuntimeException('the reason'));
        [$failures] = awaitAll($futures);

        self::assertSame([1], array_keys($failures));
        self::assertSame(0, $passedOn);
    }

    public function testAnInterruptedFiberThatWasWokenPassesThisOn(): void
    {
        $queue = new FiberQueue();
        $isPassedOn = false;
        try {
            EventLoop::queue(static function () use ($queue): void {
                $queue->wakeFirst();

                throw new \RuntimeException('of a callback');
            });
            $queue->wait(null, static function () use (&$isPassedOn): void {
                $isPassedOn = true;
            });
        } catch (\Throwable) {
        }

        self::assertTrue($isPassedOn);
    }
}
