<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Async;

use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\CannotWaitException;
use Spindle\Tests\Async;
use Spindle\Tests\Host;

final class FiberSwitchTest extends TestCase
{
    public function testACallThatCanWaitIsNotRefused(): void
    {
        FiberSwitch::ensurePossible();
        $fiber = new \Fiber(static function (): void {
            FiberSwitch::ensurePossible();
            \Fiber::suspend();
            FiberSwitch::ensurePossible();
        });
        $fiber->start();
        FiberSwitch::ensurePossible();
        $fiber->resume();

        self::assertTrue($fiber->isTerminated());
    }

    #[RequiresPhpExtension('pcntl')]
    public function testASignalHandlerIsRefused(): void
    {
        $thrown = Async::inSignalHandler(FiberSwitch::ensurePossible(...));

        self::assertInstanceOf(CannotWaitException::class, $thrown);
        self::assertStringEndsWith('The call was refused before it had an effect', $thrown->getMessage());
        FiberSwitch::ensurePossible();
    }

    public function testADestructorIsRefusedBeforePhp84(): void
    {
        $thrown = null;
        $object = new class (static function () use (&$thrown): void {
            try {
                FiberSwitch::ensurePossible();
            } catch (CannotWaitException $thrown) {
            }
        }) {
            /** @param \Closure(): void $then */
            public function __construct(private readonly \Closure $then) {}

            public function __destruct()
            {
                ($this->then)();
            }
        };
        unset($object);

        self::assertSame(\PHP_VERSION_ID < 80400, $thrown instanceof CannotWaitException);
    }

    public function testAWaitInAFiberThatIsBeingDestroyedIsRefused(): void
    {
        $thrown = null;
        $fiber = new \Fiber(static function () use (&$thrown): void {
            try {
                \Fiber::suspend();
            } finally {
                try {
                    FiberSwitch::ensurePossible();
                    (new Condition())->wait();
                } catch (CannotWaitException $thrown) {
                }
            }
        });
        $fiber->start();
        unset($fiber);

        self::assertInstanceOf(CannotWaitException::class, $thrown);
    }

    public function testAWaitForAFutureEndsWithoutAnExceptionInAFiberThatIsBeingDestroyed(): void
    {
        $deferred = new DeferredFuture();
        $future = $deferred->getFuture();
        $hasReturned = false;
        $fiber = new \Fiber(static function () use ($future, &$hasReturned): void {
            try {
                \Fiber::suspend();
            } finally {
                FiberSwitch::awaitIfPossible($future);
                $hasReturned = true;
            }
        });
        $fiber->start();
        unset($fiber);
        self::assertTrue($hasReturned);
        $deferred->complete(5);
        FiberSwitch::awaitIfPossible($future);

        self::assertSame(5, $future->await());
    }

    public function testAWaitForAFutureEndsWithTheFutureOrTheCancellation(): void
    {
        $deferred = new DeferredFuture();
        $cancellation = new DeferredCancellation();
        EventLoop::queue(static fn() => $cancellation->cancel());
        FiberSwitch::awaitIfPossible($deferred->getFuture(), $cancellation->getCancellation());
        self::assertFalse($deferred->isComplete());
        EventLoop::queue(static fn() => $deferred->error(new \DomainException('ignored')));
        FiberSwitch::awaitIfPossible($deferred->getFuture());

        self::assertTrue($deferred->isComplete());
    }

    #[RequiresPhpExtension('pcntl')]
    public function testASignalHandlerThatTheEventLoopCallsIsRefused(): void
    {
        $thrown = Host::call(self::class . '::waitInTheLoop', options: ['-d', 'zend.assertions=1']);

        self::assertSame([CannotWaitException::class, null], $thrown);
    }

    /** @return list<class-string|null> classes of the exceptions of two waits */
    public static function waitInTheLoop(): array
    {
        $future = (new DeferredFuture())->getFuture();
        $thrown = [];
        pcntl_signal(\SIGUSR2, static function () use ($future, &$thrown): void {
            foreach ([(new Condition())->wait(...), static fn() => FiberSwitch::awaitIfPossible($future)] as $wait) {
                try {
                    $wait();
                    $thrown[] = null;
                } catch (\Throwable $failure) {
                    $thrown[] = $failure::class;
                }
            }
        });
        EventLoop::repeat(0.001, static function (string $timer) use (&$thrown): void {
            $thrown === [] ? posix_kill((int) getmypid(), \SIGUSR2) : EventLoop::cancel($timer);
        });
        EventLoop::run();

        return $thrown;
    }

    #[RequiresPhpExtension('pcntl')]
    public function testAWaitThatIsNotPrecededByACheckSaysThatTheCallMayBeCarriedOut(): void
    {
        $thrown = Async::inSignalHandler((new Condition())->wait(...));

        self::assertInstanceOf(CannotWaitException::class, $thrown);
        self::assertStringEndsWith('The call may have been carried out nevertheless', $thrown->getMessage());
    }
}
