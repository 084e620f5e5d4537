<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\Future;

/**
 * Runs PHP callables somewhere else: {@see WorkerPool} in other processes, {@see InlineExecutor} in this one.
 *
 * A task works on copies. Whatever it is and is given must travel as bytes: named functions, static methods, methods of
 * serializable objects, and closures that have captured nothing else. A task may be a generator; its result is one here
 * as well, whose items come as they are asked for. Its worker runs nothing else until they have been read or the result
 * was let go.
 */
interface Executor
{
    /**
     * Runs one task. Its outcome is the future's: what it returns, or a {@see TaskException}.
     *
     * Cancellation: the future fails with CancelledException as soon as the task can do nothing more. One that has not
     * started never does; one that runs is ended together with all processes that it has started.
     *
     * @template T
     *
     * @param callable(): T $task
     *
     * @return Future<T>
     *
     * @throws UnserializableException when it can't be sent; nothing was
     * @throws PoolClosedException
     */
    public function submit(callable $task, ?Cancellation $cancellation = null): Future;

    /**
     * Calls the task with each value of the input and yields what it returns, under the value's key, in the order of the
     * input. The input is pulled a bounded number of values ahead, may be endless, block or suspend.
     *
     * The first task in that order that fails ends it: its exception is thrown, and the rest is cancelled. Leaving the
     * loop cancels the rest as well.
     *
     * Cancellation: what runs is ended, what waits never starts, then CancelledException is thrown. The executor stays
     * usable.
     *
     * @template TKey
     * @template TValue
     * @template TResult
     *
     * @param iterable<TKey, TValue>    $input
     * @param callable(TValue): TResult $task
     *
     * @return \Generator<TKey, TResult>
     *
     * @throws UnserializableException when the task can't be sent; from the generator, when a value can't be
     * @throws PoolClosedException
     * @throws TaskException           from the generator
     * @throws CancelledException      from the generator
     */
    public function map(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator;

    /**
     * As {@see self::map()}, but yields each result as soon as it is there.
     *
     * @template TKey
     * @template TValue
     * @template TResult
     *
     * @param iterable<TKey, TValue>    $input
     * @param callable(TValue): TResult $task
     *
     * @return \Generator<TKey, TResult>
     *
     * @throws UnserializableException when the task can't be sent; from the generator, when a value can't be
     * @throws PoolClosedException
     * @throws TaskException           from the generator
     * @throws CancelledException      from the generator
     */
    public function mapUnordered(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator;
}
