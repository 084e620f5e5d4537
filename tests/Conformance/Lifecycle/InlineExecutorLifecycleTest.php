<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Amp\DeferredFuture;
use Revolt\EventLoop;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Conformance\Worker\Task\Gate;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\InlineExecutor;

use function Amp\async;
use function Amp\delay;

final class InlineExecutorLifecycleTest extends ExecutorLifecycleContract
{
    use CatchesThrown;

    protected function create(): InlineExecutor
    {
        return new InlineExecutor();
    }

    public function testALoopThatIsBegunAfterTheEndIsRefused(): void
    {
        $executor = $this->create();
        $loop = $executor->map([1], abs(...));
        $executor->close();
        self::assertRefused(static fn(): array => iterator_to_array($loop));
        self::assertRefused(static fn() => $executor->map([1], abs(...)));
    }

    public function testALoopGetsTheResultOfTheTaskThatRuns(): void
    {
        $executor = $this->create();
        $gate = new Gate($this->path('gate'));
        $task = static fn(int $i): string => $gate->pass("task {$i}");
        $results = [];
        $loop = Async::run(static function () use ($executor, $task, &$results): void {
            foreach ($executor->map(new \ArrayIterator([1, 2]), $task) as $result) {
                $results[] = $result;
            }
        });
        $gate->awaitTasks(1);
        $closing = async($executor->close(...));
        delay(0);
        $gate->open();
        $closing->await();
        self::assertRefused($loop->await(...));

        self::assertSame(['task 1'], $results);
    }

    public function testALoopOverAnArrayDoesNotFailAfterItsLastTask(): void
    {
        $executor = $this->create();
        $results = [];
        foreach ($executor->map([1, 2], abs(...)) as $result) {
            $results[] = $result;
            if ($result === 2) {
                $executor->close();
            }
        }

        self::assertSame([1, 2], $results);
    }

    public function testALoopDoesNotWaitForAnInputThatIsSuspended(): void
    {
        foreach ([false, true] as $isKilled) {
            $executor = $this->create();
            /** @var DeferredFuture<int> $later */
            $later = new DeferredFuture();
            $input = static function () use ($later): \Generator {
                yield $later->getFuture()->await();
            };
            $loop = Async::run(static fn(): array => iterator_to_array($executor->map($input(), abs(...))));
            delay(0);
            $isKilled ? $executor->kill() : $executor->close();
            self::assertRefused($loop->await(...));
            $later->complete(1);
            EventLoop::run();
        }
    }

    public function testAKilledExecutorStartsNoMoreTasksAndEndsGenerators(): void
    {
        $executor = $this->create();
        $gate = new Gate($this->path('gate'));
        $items = $executor->submit(static function () use ($gate): \Generator {
            yield 1;
            $gate->pass('items', true);
            yield 2;
        })->await();
        $reader = Async::run(static fn(): array => iterator_to_array($items));
        $gate->awaitTasks(1);
        $waiting = $executor->submit(static fn(): string => $gate->pass('waiting'));
        $executor->kill();
        self::assertRefused($waiting->await(...));
        self::assertRefused($reader->await(...));

        self::assertSame(['items'], $gate->names());
    }

    public function testAKilledMapStartsNoTaskForAValueThatItHasRead(): void
    {
        $executor = $this->create();
        $values = static function () use ($executor): \Generator {
            EventLoop::queue($executor->kill(...));
            yield 1;
        };
        $gate = new Gate($this->path('gate'));
        $map = static fn(): array => iterator_to_array(
            $executor->map($values(), static fn(int $value): string => $gate->say((string) $value)),
        );
        self::assertRefused(Async::run($map)->await(...));

        self::assertSame([], $gate->names());
    }

    public function testCloseWaitsForAGenerator(): void
    {
        $executor = $this->create();
        $items = $executor->submit(static fn(): \Generator => yield from [1, 2, 3])->await();
        $closing = async($executor->close(...));
        delay(0);
        self::assertFalse($closing->isComplete());
        self::assertSame([1, 2, 3], iterator_to_array($items));
        $closing->await();
    }

    private static function assertRefused(\Closure $use): void
    {
        self::thrown(ExecutorClosedException::class, static fn() => $use());
    }
}
