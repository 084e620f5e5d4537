<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Worker\ExecutorTestCase;
use Spindle\Tests\Conformance\Worker\Task\FailingTasks;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Streams;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\TaskGroup;
use Spindle\Worker\UnserializableException;

use function Amp\delay;

/**
 * Tests tasks with callbacks.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait RunsTasks
{
    public function testEachResultComesToItsCallback(): void
    {
        $values = [];
        $tasks = new TaskGroup($this->executor());
        for ($i = 1; $i <= 100; ++$i) {
            $tasks->add(new Number($i))->then(static function (int $value) use (&$values): void {
                $values[] = $value;
            });
        }
        $tasks->wait();
        sort($values);

        self::assertSame(range(1, 100), $values);
    }

    public function testAChainOfOneExpressionIsEnough(): void
    {
        $heard = [];
        (new TaskGroup($this->executor()))
            ->add([new Number(5), 'value'])
            ->then(static function (int $value) use (&$heard): void {
                $heard[] = $value;
            })
            ->add([FailingTasks::class, 'withField'])
            ->catch(static function (\Throwable $failure) use (&$heard): void {
                $heard[] = $failure::class;
            })
            ->wait();
        sort($heard);

        self::assertSame([5, TaskFailedException::class], $heard);
    }

    public function testACallbackIsThatOfItsOwnTaskWheneverItIsAdded(): void
    {
        $heard = [];
        $tasks = new TaskGroup($this->executor());
        $one = $tasks->add(new Number(1));
        $tasks->add(new Number(2));
        $one->then(static function (int $value) use (&$heard): void {
            $heard[] = "first {$value}";
        });
        $one->then(static function (int $value) use (&$heard): void {
            $heard[] = "second {$value}";
        });
        $tasks->wait();

        self::assertSame(['first 1', 'second 1'], $heard);
    }

    public function testATaskThatACallbackAddsRunsAsWell(): void
    {
        $heard = [];
        $tasks = new TaskGroup($this->executor());
        $add = static function (int $depth) use ($tasks, &$add, &$heard): void {
            $tasks->add(new Number($depth))->then(static function (int $value) use (&$add, &$heard): void {
                $heard[] = $value;
                if ($value < 5) {
                    $add($value + 1);
                }
            });
        };
        $add(1);
        $tasks->wait();

        self::assertSame([1, 2, 3, 4, 5], $heard);
    }

    public function testAFailureReachesItsCatch(): void
    {
        $caught = null;
        $tasks = new TaskGroup($this->executor());
        $tasks->add([FailingTasks::class, 'withField'])
            ->then(static fn() => self::fail('It has no result'))
            ->catch(static function (\Throwable $failure) use (&$caught): void {
                $caught = $failure;
            });
        $tasks->wait();

        self::assertInstanceOf(TaskFailedException::class, $caught);
        self::assertSame('name must not be Spades', $caught->thrown->message);
        self::assertSame([], $tasks->failures());
    }

    public function testAFailureWithoutACatchIsThrownWhenAllElseIsDone(): void
    {
        $done = 0;
        $tasks = new TaskGroup($this->executor());
        for ($i = 0; $i < 50; ++$i) {
            $task = static fn(): int => FailingTasks::at($i, 20);
            $tasks->add($task)->then(static function () use (&$done): void {
                ++$done;
            });
        }
        $failed = self::thrown(TaskFailedException::class, static fn() => $tasks->wait());

        self::assertSame('bad 20', $failed->thrown->message);
        self::assertSame(49, $done);
        self::assertSame([$failed], $tasks->failures());
    }

    public function testAllFailuresAreReturned(): void
    {
        $tasks = new TaskGroup($this->executor());
        for ($i = 0; $i < 3; ++$i) {
            $tasks->add([FailingTasks::class, 'withField']);
        }
        $failed = self::thrown(TaskFailedException::class, static fn() => $tasks->wait());

        self::assertCount(3, $tasks->failures());
        self::assertSame($failed, $tasks->failures()[0]);
    }

    public function testAnUnserializableTaskFailsLikeOthers(): void
    {
        $stream = Streams::open('php://memory', 'r');
        $done = 0;
        $caught = null;
        $tasks = new TaskGroup($this->executor());
        $task = static fn(): bool => feof($stream);
        $tasks->add($task)->catch(static function (\Throwable $failure) use (&$caught): void {
            $caught = $failure;
        });
        $tasks->add(Number::answer(...))->then(static function () use (&$done): void {
            ++$done;
        });
        $tasks->wait();

        self::assertInstanceOf(UnserializableException::class, $caught);
        self::assertSame(1, $done);
    }

    public function testAnExceptionOfACallbackComesToTheCatchOfItsTask(): void
    {
        $caught = null;
        $tasks = new TaskGroup($this->executor());
        $tasks->add(Number::answer(...))
            ->then(static fn() => throw new \DomainException('of the callback'))
            ->catch(static function (\Throwable $failure) use (&$caught): void {
                $caught = $failure->getMessage();
            });
        $tasks->wait();

        self::assertSame('of the callback', $caught);
    }

    public function testAnExceptionOfACallbackWithoutACatchIsThrown(): void
    {
        $done = 0;
        $tasks = new TaskGroup($this->executor());
        $tasks->add(Number::answer(...))->then(static fn() => throw new \DomainException('of then()'));
        $tasks->add([FailingTasks::class, 'withField'])->catch(static fn() => throw new \LengthException('of catch()'));
        $tasks->add(Number::answer(...))->then(static function () use (&$done): void {
            ++$done;
        });
        self::thrown(\LogicException::class, static fn() => $tasks->wait());
        $messages = array_map(static fn(\Throwable $failure): string => $failure->getMessage(), $tasks->failures());
        sort($messages);

        self::assertSame(['of catch()', 'of then()'], $messages);
        self::assertSame(1, $done);
    }

    public function testWaitMayBeCalledAgain(): void
    {
        $heard = [];
        $tasks = new TaskGroup($this->executor());
        $tasks->wait();
        foreach ([1, 2] as $round) {
            $tasks->add(new Number($round))->then(static function (int $value) use (&$heard): void {
                $heard[] = $value;
            });
            $tasks->add([FailingTasks::class, 'withField']);
            self::thrown(TaskFailedException::class, static fn() => $tasks->wait());
            self::assertCount(1, $tasks->failures());
        }
        $tasks->wait();

        self::assertSame([1, 2], $heard);
        self::assertSame([], $tasks->failures());
    }

    public function testWaitInACallbackIsRefused(): void
    {
        $tasks = new TaskGroup($this->executor());
        $tasks->add(Number::answer(...))->then(static fn() => $tasks->wait());

        self::assertStringContainsString(
            'wait() is already running',
            self::thrown(\LogicException::class, static fn() => $tasks->wait())->getMessage(),
        );
    }

    public function testACallbackThatComesTooLateIsRefused(): void
    {
        $tasks = new TaskGroup($this->executor());
        $task = $tasks->add(Number::answer(...));
        $tasks->wait();

        self::thrown(\LogicException::class, static fn() => $task->then(static fn() => null));
        self::thrown(\LogicException::class, static fn() => $task->catch(static fn() => null));
    }

    public function testACallbackMaySuspend(): void
    {
        $heard = [];
        $tasks = new TaskGroup($this->executor());
        for ($i = 0; $i < 5; ++$i) {
            $tasks->add(new Number($i))->then(static function (int $value) use (&$heard): void {
                delay(0.001);
                $heard[] = $value;
            });
        }
        $tasks->wait();
        sort($heard);

        self::assertSame([0, 1, 2, 3, 4], $heard);
    }

    public function testMoreTasksThanTheWindowAllRun(): void
    {
        $count = 0;
        $tasks = new TaskGroup($this->executor());
        for ($i = 0; $i < 3000; ++$i) {
            $tasks->add('pi')->then(static function () use (&$count): void {
                ++$count;
            });
        }
        $tasks->wait();

        self::assertSame(3000, $count);
    }

    public function testACancelledWaitEndsRunningTasksAndDropsWaitingOnes(): void
    {
        $gate = $this->gate();
        $cancellation = new DeferredCancellation();
        $executor = $this->executor();
        $tasks = new TaskGroup($executor);
        for ($i = 0; $i < 2000; ++$i) {
            $task = static fn(): string => $gate->pass("{$i}", true);
            $tasks->add($task)->then(static fn() => self::fail('It has no result'));
        }
        $waiting = Async::run(static fn() => $tasks->wait($cancellation->getCancellation()));
        $gate->awaitTasks(1);
        $cancellation->cancel();
        self::failure(CancelledException::class, $waiting);
        $started = \count($gate->names());
        $tasks->wait();
        self::assertUsable($executor);

        self::assertLessThan(2000, $started);
        self::assertCount($started, $gate->names());
        self::assertSame([], $tasks->failures());
    }
}
