<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\NullCancellation;
use Amp\TimeoutCancellation;
use Amp\TimeoutException;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Worker\ExecutorTestCase;
use Spindle\Tests\Conformance\Worker\Task\Number;

/**
 * Tests cancellations before, during and after a task, and the executor afterwards.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait IsCancelled
{
    public function testATaskThatWasCancelledBeforehandNeverStarts(): void
    {
        $gate = $this->gate();
        $cancellation = new DeferredCancellation();
        $cancellation->cancel(new \DomainException('enough'));
        $executor = $this->executor();
        $future = $executor->submit(static fn(): string => $gate->say('submitted'), $cancellation->getCancellation());

        self::assertSame('enough', self::failure(CancelledException::class, $future)->getPrevious()?->getMessage());
        self::assertUsable($executor);
        self::assertSame([], $gate->names());
    }

    public function testATaskThatIsCancelledBeforeItStartsNeverDoes(): void
    {
        $gate = $this->gate();
        $cancellation = new DeferredCancellation();
        $executor = $this->ownExecutor(); // a running worker might have started the task at once
        $future = $executor->submit(static fn(): string => $gate->say('submitted'), $cancellation->getCancellation());
        $cancellation->cancel();

        self::failure(CancelledException::class, $future);
        self::assertUsable($executor);
        self::assertSame([], $gate->names());
    }

    public function testATaskThatRunsIsEnded(): void
    {
        $gate = $this->gate();
        $cancellation = new DeferredCancellation();
        $executor = $this->executor();
        $future = $executor->submit(static fn(): string => $gate->pass('task', true), $cancellation->getCancellation());
        $gate->awaitTasks(1);
        $cancellation->cancel(new \DomainException('enough'));

        self::assertSame('enough', self::failure(CancelledException::class, $future)->getPrevious()?->getMessage());
        self::assertUsable($executor);
    }

    public function testACancelledTaskFailsWhenItHasEndedWhateverItReturns(): void
    {
        $this->needsCancellationInTasks();
        $gate = $this->gate();
        $ended = $this->path('ended');
        $cancellation = new DeferredCancellation();
        $executor = $this->executor();
        $task = static function () use ($gate, $ended): string {
            try {
                $gate->pass('task', true);
            } catch (CancelledException) {
                touch($ended);
            }

            return 'a result';
        };
        $future = $executor->submit($task, $cancellation->getCancellation());
        $gate->awaitTasks(1);
        $cancellation->cancel();

        self::failure(CancelledException::class, $future);
        self::assertFileExists($ended);
    }

    public function testATimeoutIsACancellation(): void
    {
        $gate = $this->gate();
        $executor = $this->executor();
        $future = $executor->submit(static fn(): string => $gate->pass('task', true), new TimeoutCancellation(0.01));

        self::assertInstanceOf(
            TimeoutException::class,
            self::failure(CancelledException::class, $future)->getPrevious(),
        );
        self::assertUsable($executor);
    }

    public function testACancellationAfterTheResultChangesNothing(): void
    {
        $cancellation = new DeferredCancellation();
        $executor = $this->executor();
        $future = $executor->submit(Number::answer(...), $cancellation->getCancellation());
        self::assertSame(42, $future->await());
        $cancellation->cancel();

        self::assertSame(42, $future->await());
        self::assertUsable($executor);
    }

    public function testACancellationThatNeverComesChangesNothing(): void
    {
        $never = new DeferredCancellation();
        $executor = $this->executor();

        self::assertSame(42, $executor->submit(Number::answer(...), new NullCancellation())->await());
        self::assertSame(42, $executor->submit(Number::answer(...), $never->getCancellation())->await());
        self::assertSame(
            [2, 4],
            iterator_to_array($executor->map([1, 2], Number::double(...), $never->getCancellation())),
        );
        self::assertFalse($never->isCancelled());
    }

    public function testOneCancelledTaskLeavesTheOthers(): void
    {
        $gate = $this->gate();
        $cancellation = new DeferredCancellation();
        $executor = $this->executor();
        $futures = [];
        for ($i = 0; $i < 10; ++$i) {
            $futures[] = $executor->submit(
                static fn(): string => $gate->pass("{$i}", $i === 1),
                $i === 1 ? $cancellation->getCancellation() : null,
            );
        }
        $gate->awaitTasks(2);
        $cancellation->cancel();
        self::failure(CancelledException::class, $futures[1]);
        $gate->open();
        unset($futures[1]);
        foreach ($futures as $i => $future) {
            self::assertSame("{$i}", $future->await());
        }
    }

    public function testALoopThatWasCancelledBeforehandStartsNothing(): void
    {
        $gate = $this->gate();
        $pulled = 0;
        $input = static function () use (&$pulled): \Generator {
            yield (string) ++$pulled;
        };
        $cancellation = new DeferredCancellation();
        $cancellation->cancel();
        $executor = $this->executor();
        foreach (['map', 'mapUnordered'] as $verb) {
            $results = self::loop($executor, $verb, $input(), [$gate, 'say'], $cancellation->getCancellation());
            self::thrown(CancelledException::class, static fn() => iterator_to_array($results));
        }
        self::assertUsable($executor);

        self::assertSame([], $gate->names());
        self::assertSame(0, $pulled);
    }

    public function testACancelledLoopEndsRunningTasksAndStartsNoOthers(): void
    {
        $executor = $this->executor();
        foreach (['map', 'mapUnordered'] as $verb) {
            $gate = $this->gate($verb);
            $cancellation = new DeferredCancellation();
            $input = array_map(strval(...), range(1, 50));
            $task = static fn(string $name): string => $gate->pass($name, true);
            $loop = Async::run(
                static fn(): array
                    => iterator_to_array(self::loop($executor, $verb, $input, $task, $cancellation->getCancellation())),
            );
            $gate->awaitTasks(1);
            $cancellation->cancel();
            self::failure(CancelledException::class, $loop);
            $started = $gate->names();
            self::assertUsable($executor);

            self::assertLessThan(10, \count($started));
            self::assertSame($started, $gate->names());
        }
    }

    public function testALoopThatIsCancelledInItsBodyThrowsThen(): void
    {
        $executor = $this->executor();
        foreach (['map', 'mapUnordered'] as $verb) {
            $cancellation = new DeferredCancellation();
            $input = static function (): \Generator {
                for ($i = 0; true; ++$i) {
                    yield $i;
                }
            };
            $taken = 0;
            self::thrown(
                CancelledException::class,
                static function () use ($executor, $verb, $input, $cancellation, &$taken): void {
                    foreach (self::loop(
                        $executor,
                        $verb,
                        $input(),
                        Number::double(...),
                        $cancellation->getCancellation(),
                    ) as $_) {
                        if (++$taken === 5) {
                            $cancellation->cancel();
                        }
                    }
                },
            );
            self::assertSame(5, $taken);
            self::assertUsable($executor);
        }
    }

    public function testACancelledLoopDoesNotWaitForItsInput(): void
    {
        $never = new DeferredFuture();
        $never->getFuture()->ignore();
        $input = static function () use ($never): \Generator {
            yield 1;
            $never->getFuture()->await();
        };
        $cancellation = new DeferredCancellation();
        $executor = $this->executor();
        self::thrown(CancelledException::class, static function () use ($executor, $input, $cancellation): void {
            foreach ($executor->map($input(), Number::double(...), $cancellation->getCancellation()) as $_) {
                $cancellation->cancel();
            }
        });
        self::assertUsable($executor);
        $never->complete();
    }

    public function testACancelledLoopEndsAfterAllItsResultsWereThere(): void
    {
        $cancellation = new DeferredCancellation();
        $executor = $this->executor();
        $results = iterator_to_array($executor->map([1, 2], Number::double(...), $cancellation->getCancellation()));
        $cancellation->cancel();

        self::assertSame([2, 4], $results);
        self::assertUsable($executor);
    }
}
