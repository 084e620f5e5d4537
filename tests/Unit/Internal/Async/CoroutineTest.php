<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Async;

use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Internal\Async\Coroutine;
use Spindle\Tests\VirtualTime;

use function Amp\delay;

final class CoroutineTest extends TestCase
{
    use VirtualTime;

    /** @var list<\Fiber<mixed, mixed, mixed, mixed>|null> fiber of each step */
    private array $fibers = [];

    protected function tearDown(): void
    {
        $this->fibers = [];
    }

    public function testStepsRunInOneFiberAlthoughTheyWait(): void
    {
        $coroutine = new Coroutine();
        for ($step = 1; $step <= 4; ++$step) {
            $coroutine->queue($this->step(seconds: $step % 2));
            delay(2);
        }

        self::assertCount(4, $this->fibers);
        self::assertCount(1, $this->distinctFibers());
        self::assertNotContains(null, $this->fibers);
    }

    public function testAStepCanQueueTheNextOne(): void
    {
        $coroutine = new Coroutine();
        $coroutine->queue(function () use ($coroutine): bool {
            $coroutine->queue($this->step());

            return $this->step()();
        });
        EventLoop::run();

        self::assertCount(2, $this->fibers);
        self::assertCount(1, $this->distinctFibers());
    }

    public function testAfterTheLastStepAnotherFiberBegins(): void
    {
        $coroutine = new Coroutine();
        $coroutine->queue(fn(): bool => $this->step(1)() && false);
        delay(2);
        $coroutine->queue($this->step(1));
        delay(2);

        self::assertCount(2, $this->distinctFibers());
    }

    public function testAfterAFailureAnotherFiberBegins(): void
    {
        $failures = [];
        EventLoop::setErrorHandler(static function (\Throwable $failure) use (&$failures): void {
            $failures[] = $failure->getMessage();
        });
        $coroutine = new Coroutine();
        $coroutine->queue(fn(): bool => $this->step(1)() && throw new \DomainException('of the step'));
        delay(2);
        $coroutine->queue($this->step(1));
        delay(2);

        self::assertSame(['of the step'], $failures);
        self::assertCount(2, $this->distinctFibers());
    }

    public function testTheFiberEndsWithItsOwnerWithoutAGarbageCollection(): void
    {
        $coroutine = new Coroutine();
        $coroutine->queue($this->step(1));
        delay(2);
        $fiber = $this->fibers[0];
        self::assertNotNull($fiber);
        $weak = \WeakReference::create($fiber);
        unset($fiber);
        $this->fibers = [];
        $wasAlive = $weak->get() !== null;
        gc_disable();
        unset($coroutine);
        $isAlive = $weak->get() !== null;
        gc_enable();

        self::assertSame([true, false], [$wasAlive, $isAlive]);
    }

    /** @return \Closure(): bool */
    private function step(float $seconds = 0): \Closure
    {
        return function () use ($seconds): bool {
            $this->fibers[] = \Fiber::getCurrent();
            if ($seconds > 0) {
                delay($seconds);
            }

            return true;
        };
    }

    /** @return array<int, true> by object id */
    private function distinctFibers(): array
    {
        $distinct = [];
        foreach ($this->fibers as $fiber) {
            $distinct[$fiber === null ? 0 : spl_object_id($fiber)] = true;
        }

        return $distinct;
    }
}
