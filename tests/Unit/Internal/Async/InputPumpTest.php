<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Async;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\InputPump;
use Spindle\Internal\Async\LoopTurn;
use Spindle\Tests\VirtualTime;

use function Amp\delay;

final class InputPumpTest extends TestCase
{
    use VirtualTime;

    public function testValuesKeepTheirOrderAndTheirKeys(): void
    {
        $consumer = new CollectingConsumer();
        $object = new \stdClass();
        $long = str_repeat('x', 5000);
        $input = ['a' => 1, 'b' => 'two', 'c' => $object, 'd' => $long, 'e' => 5, 'f' => null, 'g' => 7];
        $pump = new InputPump($consumer, $input);
        $pump->pullSoon();
        self::assertSame([], $consumer->values);
        self::assertTrue($pump->isReading);
        EventLoop::run();

        self::assertSame(array_values($input), $consumer->values);
        self::assertSame(array_keys($input), $consumer->keys);
        self::assertTrue($pump->isOver);
        self::assertFalse($pump->isReading);
        self::assertNull($pump->failure);
        self::assertSame([7], $consumer->pauses);
    }

    public function testAllCodeOfAnInputRunsInOneFiber(): void
    {
        $consumer = new CollectingConsumer(0);
        $pump = new InputPump($consumer, (static function (): \Generator {
            for (;;) {
                delay(1);
                yield \Fiber::getCurrent();
            }
        })());
        while (++$consumer->limit <= 4) {
            $pump->pullSoon();
            delay(2);
        }

        self::assertCount(4, $consumer->values);
        self::assertInstanceOf(\Fiber::class, $consumer->values[0]);
        self::assertSame(array_fill(0, 4, $consumer->values[0]), $consumer->values);
    }

    public function testNothingIsReadBeyondTheRoom(): void
    {
        $consumer = new CollectingConsumer(3);
        /** @var \ArrayObject<int, true> $read */
        $read = new \ArrayObject();
        $pump = new InputPump($consumer, (static function () use ($read): \Generator {
            while (true) {
                $read[] = true;
                yield \count($read);
            }
        })());
        self::assertCount(0, $read);
        foreach ([3, 3, 40, 41] as $limit) {
            $consumer->limit = $limit;
            $pump->pullSoon();
            EventLoop::run();
            self::assertCount($limit, $consumer->values);
            self::assertCount($limit, $read);
        }
        self::assertSame(range(1, 41), $consumer->values);
        self::assertFalse($pump->isOver);
    }

    public function testAMutableValueIsPassedOnBeforeTheNextIsRead(): void
    {
        $consumer = new CollectingConsumer();
        $seen = [];
        $consumer->onValue = static function (mixed $value) use (&$seen): void {
            $seen[] = $value instanceof \ArrayObject ? \count($value) : $value;
        };
        $pump = new InputPump($consumer, (static function (): \Generator {
            /** @var \ArrayObject<int, string> $object */
            $object = new \ArrayObject();
            yield 7;
            yield $object;
            $object[] = 'changed';
            yield $object;
        })());
        $pump->pullSoon();
        EventLoop::run();

        self::assertSame([7, 0, 1], $seen);
    }

    public function testASlowInputLetsTheLoopRun(): void
    {
        $consumer = new CollectingConsumer();
        $pump = new InputPump($consumer, (function (): \Generator {
            for ($i = 0; $i < 40; ++$i) {
                $this->freeze(0.0005);
                yield $i;
            }
        })());
        $pump->pullSoon();
        LoopTurn::await();
        $read = \count($consumer->values);
        EventLoop::run();

        self::assertGreaterThan(0, $read);
        self::assertLessThan(40, $read);
        self::assertSame(range(0, 39), $consumer->values);
    }

    public function testTheFailureOfTheInputComesAfterTheValuesBeforeIt(): void
    {
        $consumer = new CollectingConsumer();
        $pump = new InputPump($consumer, (static function (): \Generator {
            yield 1;
            yield 2;
            throw new \DomainException('the input failed');
        })());
        $pump->pullSoon();
        EventLoop::run();

        self::assertSame([1, 2], $consumer->values);
        self::assertSame([2], $consumer->pauses);
        self::assertTrue($pump->isOver);
        self::assertSame('the input failed', $pump->failure?->getMessage());
    }

    public function testARefusedValueEndsTheInput(): void
    {
        $consumer = new CollectingConsumer();
        $consumer->onValue = static fn(mixed $value) => $value === 2 ? throw new \ValueError('refused') : null;
        $pump = new InputPump($consumer, [1, 2, 3]);
        $pump->pullSoon();
        EventLoop::run();

        self::assertSame([1], $consumer->values);
        self::assertTrue($pump->isOver);
        self::assertSame('refused', $pump->failure?->getMessage());
    }

    public function testASuspendedInputPassesOnWhatItHasRead(): void
    {
        $consumer = new CollectingConsumer();
        $wait = new Condition();
        $pump = new InputPump($consumer, (static function () use ($wait): \Generator {
            yield 1;
            yield 2;
            $wait->wait();
            yield 3;
            yield 4;
        })());
        $pump->pullSoon();
        LoopTurn::await();
        LoopTurn::await();
        self::assertSame([1, 2], $consumer->values);
        self::assertSame([2], $consumer->suspensions);
        self::assertSame([], $consumer->pauses);
        self::assertTrue($pump->isSuspended);
        $wait->notify();
        LoopTurn::await();

        self::assertSame([1, 2, 3, 4], $consumer->values);
        self::assertSame([2, 3, 4], $consumer->suspensions);
        self::assertSame([4], $consumer->pauses);
        self::assertFalse($pump->isSuspended);
    }

    /** @return iterable<string, array{bool, bool}> whether the input is suspended; whether it calls close() itself */
    public static function closings(): iterable
    {
        yield 'while the input is suspended' => [true, false];
        yield 'by the input' => [false, true];
        yield 'by the input, which then suspends' => [true, true];
    }

    #[DataProvider('closings')]
    public function testAClosedInputKeepsWhatItHasReadAndDropsTheRest(bool $isSuspended, bool $isClosedByInput): void
    {
        $consumer = new CollectingConsumer();
        $wait = new Condition();
        $reason = new \LogicException('closed');
        /** @var \SplObjectStorage<InputPump, null> $pumps */
        $pumps = new \SplObjectStorage();
        $input = static function () use ($wait, $pumps, $reason, $isSuspended, $isClosedByInput): \Generator {
            yield 1;
            yield 2;
            foreach ($isClosedByInput ? $pumps : [] as $pump) {
                $pump->close($reason);
            }
            if ($isSuspended) {
                $wait->wait();
            }
            yield 3;
            self::fail('The input was read after the call of close()');
        };
        $pump = new InputPump($consumer, $input());
        $pumps[$pump] = null;
        $pump->pullSoon();
        LoopTurn::await();
        $pump->close($reason);
        self::assertTrue($pump->isOver);
        self::assertSame([1, 2], $consumer->values);
        $wait->notify();
        EventLoop::run();

        self::assertSame([1, 2], $consumer->values);
        self::assertSame($reason, $pump->failure);
        self::assertFalse($pump->isReading);
    }

    public function testAnArrayThatWasReadCompletelyHasNoFailure(): void
    {
        $failures = [];
        foreach ([2, 3] as $limit) {
            $pump = new InputPump(new CollectingConsumer($limit), [1, 2, 3]);
            $pump->pullSoon();
            EventLoop::run();
            self::assertFalse($pump->isOver);
            $pump->close(new \LogicException("after {$limit}"));
            $failures[] = $pump->failure?->getMessage();
        }

        self::assertSame(['after 2', null], $failures);
    }

    public function testAFailureEndsTheInputEvenIfAllWasRead(): void
    {
        $pump = new InputPump(new CollectingConsumer(3), [1, 2, 3]);
        $pump->pullSoon();
        EventLoop::run();
        $pump->fail(new \LogicException('first'));
        $pump->fail(new \LogicException('second'));

        self::assertTrue($pump->isOver);
        self::assertSame('first', $pump->failure?->getMessage());
    }

    public function testAReleasedInputIsDestroyed(): void
    {
        $input = (static function (): \Generator {
            yield 1;
            yield 2;
        })();
        $weak = \WeakReference::create($input);
        $pump = new InputPump(new CollectingConsumer(1), $input);
        unset($input);
        $pump->pullSoon();
        EventLoop::run();
        self::assertNotNull($weak->get());
        $pump->release();

        self::assertNull($weak->get());
    }
}
