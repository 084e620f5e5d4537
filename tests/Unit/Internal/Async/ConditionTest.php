<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Async;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\CannotWaitException;
use Spindle\Tests\CatchesThrown;

use function Amp\async;
use function Amp\delay;

final class ConditionTest extends TestCase
{
    use CatchesThrown;

    public function testANotificationResumesTheWaitingFiberOnce(): void
    {
        $condition = new Condition();
        $resumed = 0;
        $future = async(static function () use ($condition, &$resumed): void {
            $condition->wait();
            ++$resumed;
        });
        delay(0);
        self::assertTrue($condition->isAwaited());
        $condition->notify();
        $condition->notify();
        self::assertFalse($condition->isAwaited());
        $future->await();

        self::assertSame(1, $resumed);
    }

    public function testANotificationWithoutAWaitingFiberIsLost(): void
    {
        $condition = new Condition();
        $condition->notify();
        $condition->fail(new \RuntimeException('lost'));
        EventLoop::defer(static fn() => $condition->notify());
        $condition->wait();

        self::assertFalse($condition->isAwaited());
    }

    public function testAFailureIsThrownInTheWaitingFiber(): void
    {
        $condition = new Condition();
        EventLoop::defer(static fn() => $condition->fail(new \RuntimeException('the reason')));

        $this->expectExceptionMessage('the reason');
        $condition->wait();
    }

    public function testACancellationEndsTheWait(): void
    {
        $condition = new Condition();
        $cancellation = new DeferredCancellation();
        EventLoop::defer(static fn() => $cancellation->cancel());
        self::thrown(CancelledException::class, static fn() => $condition->wait($cancellation->getCancellation()));
        self::assertFalse($condition->isAwaited());
    }

    public function testAFiberThatWasNotifiedDoesNotForgetTheNextOne(): void
    {
        $condition = new Condition();
        $first = async($condition->wait(...));
        delay(0);
        EventLoop::queue($condition->wait(...)); // begins to wait before the first fiber resumes
        $condition->notify();
        $first->await();
        self::assertTrue($condition->isAwaited());
        $condition->notify();
        delay(0);
        self::assertFalse($condition->isAwaited());
    }

    public function testTheOwnerIsKeptOnlyWhileAFiberWaits(): void
    {
        $condition = new Condition();
        $owner = new \stdClass();
        $weak = \WeakReference::create($owner);
        EventLoop::queue(static function () use ($condition, $weak): void {
            $condition->wait(owner: $weak->get());
        });
        delay(0);
        unset($owner);
        gc_collect_cycles();
        self::assertNotNull($weak->get());
        $condition->notify();
        delay(0);
        gc_collect_cycles();
        self::assertNull($weak->get());
    }

    public function testAWaitWherePhpCannotSuspendThrowsBeforeTheLoopRuns(): void
    {
        if (\PHP_VERSION_ID >= 80400) {
            self::markTestSkipped('PHP 8.4 can suspend in destructors');
        }
        $condition = new Condition();
        /** @var \SplQueue<\Throwable> $failures */
        $failures = new \SplQueue();
        async(static function () use ($condition, $failures): void {
            $object = new class ($condition, $failures) {
                /** @param \SplQueue<\Throwable> $failures */
                public function __construct(
                    private readonly Condition $condition,
                    private readonly \SplQueue $failures,
                ) {}

                public function __destruct()
                {
                    try {
                        $this->condition->wait();
                    } catch (\Throwable $thrown) {
                        $this->failures->enqueue($thrown);
                    }
                }
            };
            unset($object);
        })->await();

        self::assertInstanceOf(CannotWaitException::class, $failures->dequeue());
        self::assertFalse($condition->isAwaited());
    }
}
