<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Amp\Cancellation;
use Amp\Future;
use PHPUnit\Framework\Attributes\After;
use Revolt\EventLoop;
use Revolt\EventLoop\DriverFactory;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Conformance\Worker\Task\Gate;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\ReadsErrorLog;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\Executor;

use function Amp\Future\await;

/** Base class of the tests of executors. */
abstract class ExecutorTestCase extends TidyTestCase
{
    use CatchesThrown;
    use ReadsErrorLog;

    /** @var \SplObjectStorage<Executor, null>|null executors of this test, held until it ends or drops them */
    private ?\SplObjectStorage $executors = null;

    /**
     * Creates an executor with room for two concurrent tasks, if it runs tasks concurrently.
     *
     * @param (\Closure(mixed): void)|null $onReport
     */
    abstract protected function make(?\Closure $onReport): Executor;

    /** Returns how many items of a generator may be produced before they are read. */
    abstract protected function itemsAhead(): int;

    /** Returns whether a cancellation reaches a task that asks for it. */
    protected function tellsTasksOfTheirCancellation(): bool
    {
        return true;
    }

    protected function needsCancellationInTasks(): void
    {
        if (!$this->tellsTasksOfTheirCancellation()) {
            self::markTestSkipped('A thread is ended at once: its tasks are not told of their cancellation');
        }
    }

    #[After]
    protected function dropExecutors(): void
    {
        $this->executors = null;
    }

    /** Replaces the event loop after a failure: an exception may have left it in the middle of an operation. */
    #[After(-5)]
    protected function renewTheLoop(): void
    {
        if ($this->status()->isFailure() || $this->status()->isError()) {
            EventLoop::setDriver((new DriverFactory())->create());
            gc_collect_cycles();
        }
    }

    /**
     * Returns an executor that other tests may use as well, before or after this one.
     *
     * @param (\Closure(mixed): void)|null $onReport
     */
    protected function executor(?\Closure $onReport = null): Executor
    {
        return $this->ownExecutor($onReport);
    }

    /**
     * Returns an executor of this test only.
     *
     * @param (\Closure(mixed): void)|null $onReport
     */
    protected function ownExecutor(?\Closure $onReport = null): Executor
    {
        return $this->held($this->make($onReport));
    }

    /**
     * @template T of Executor
     *
     * @param T $executor
     *
     * @return T
     */
    protected function held(Executor $executor): Executor
    {
        $this->executors ??= new \SplObjectStorage();
        $this->executors->attach($executor);

        return $executor;
    }

    protected function gate(string $name = 'gate'): Gate
    {
        return new Gate($this->path($name));
    }

    /** Waits for all earlier tasks. The executor has room for two tasks, so they are over when two others run. */
    protected function awaitWhatRuns(Executor $executor, string $name): void
    {
        $gate = $this->gate($name);
        $others = [
            $executor->submit(static fn(): string => $gate->pass('a')),
            $executor->submit(static fn(): string => $gate->pass('b')),
        ];
        $gate->awaitTasks(2);
        $gate->open();
        await($others);
    }

    /**
     * Calls map() or mapUnordered().
     *
     * @template TKey
     * @template TValue
     * @template TResult
     *
     * @param 'map'|'mapUnordered'      $verb
     * @param iterable<TKey, TValue>    $input
     * @param callable(TValue): TResult $task
     *
     * @return \Generator<TKey, TResult>
     */
    protected static function loop(
        Executor $executor,
        string $verb,
        iterable $input,
        callable $task,
        ?Cancellation $cancellation = null,
    ): \Generator {
        return $verb === 'map'
            ? $executor->map($input, $task, $cancellation)
            : $executor->mapUnordered($input, $task, $cancellation);
    }

    /**
     * @template TKey
     * @template TItem
     * @template TResult
     *
     * @param \Closure(): \Generator<TKey, TItem, mixed, TResult> $task
     *
     * @return \Generator<TKey, TItem, mixed, TResult>
     */
    protected static function items(Executor $executor, \Closure $task): \Generator
    {
        $items = $executor->submit($task)->await();

        return $items;
    }

    protected static function assertUsable(Executor $executor): void
    {
        self::assertSame(42, $executor->submit([Number::class, 'answer'])->await());
        self::assertSame(
            ['a' => 2, 'b' => 4],
            iterator_to_array($executor->map(['a' => 1, 'b' => 2], [Number::class, 'double'])),
        );
    }

    /**
     * Returns the exception of a failed future, after a check of its class.
     *
     * @template T of \Throwable
     *
     * @param Future<mixed>   $future
     * @param class-string<T> $class
     *
     * @return T
     */
    protected static function failure(string $class, Future $future): \Throwable
    {
        return self::thrown($class, $future->await(...));
    }
}
