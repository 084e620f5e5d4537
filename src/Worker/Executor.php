<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\Future;
use Spindle\Lifecycle;

/**
 * Runs PHP callables as tasks. A {@see WorkerPool} runs them in other processes, a RemoteExecutor on other machines,
 * and an {@see InlineExecutor} in this process.
 *
 * A task works on copies: the callable, its argument and its result are serialized. A task can be a named function, a
 * static method, a method of a serializable object, or a closure whose captured values are serializable or closures.
 * Tasks of one map() call that run in the same process may share one copy of the callable, including its objects and
 * static variables. Tasks of other calls never use this copy.
 *
 * A task may be a generator function. The caller then gets a generator that yields the items of the task. The task can
 * be ahead of the caller by a limited number of items. The worker runs no other task until this task has ended or the
 * caller's generator was destroyed.
 *
 * {@see close()} waits for all submitted tasks. A running map() call reads no more values, but yields the results of
 * all values that it has read. If the call has not read the whole input, it then throws ExecutorClosedException.
 */
interface Executor extends Lifecycle
{
    /**
     * Runs one task. The future completes with the task's return value, or fails, usually with a {@see TaskException}.
     *
     * Cancellation: a task that has not started never starts. A {@see WorkerPool} ends a running task and, except in
     * threads, the processes that the task started. The future fails with CancelledException when the task has ended or
     * can no longer start.
     *
     * @template T
     *
     * @param callable(): T $task
     *
     * @return Future<T>
     *
     * @throws UnserializableException when the task cannot be serialized; nothing was sent
     * @throws ExecutorClosedException
     */
    public function submit(callable $task, ?Cancellation $cancellation = null): Future;

    /**
     * Calls the task with each value of the input. Yields the results in the order of the input and with its keys. The
     * input may be endless, may block, and may suspend its fiber. A limited number of values is read ahead.
     *
     * The generator throws the exception of the first failed task in the order of the input, and cancels the other
     * tasks. If the caller stops iterating before the end, all unfinished tasks are cancelled.
     *
     * Cancellation: running tasks are ended, and tasks that have not started never start. The generator throws
     * CancelledException. The executor stays usable.
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
     * @throws UnserializableException for an unserializable task; from the generator for an unserializable value
     * @throws ExecutorClosedException
     * @throws TaskException           from the generator
     * @throws CancelledException      from the generator
     */
    public function map(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator;

    /**
     * Does the same as {@see self::map()}, but yields each result as soon as the result arrives, in any order. Throws
     * the first exception that arrives. A worker of a {@see WorkerPool} collects the results of tiny tasks for up to
     * 100 µs before it sends them. If a long task starts in this time, the results arrive only when that task ends.
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
     * @throws UnserializableException for an unserializable task; from the generator for an unserializable value
     * @throws ExecutorClosedException
     * @throws TaskException           from the generator
     * @throws CancelledException      from the generator
     */
    public function mapUnordered(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator;

    /**
     * Does the same as {@see self::map()}, but continues after failed tasks: yields a {@see MapOutcome} for each value.
     * If the input throws, or a value cannot be serialized, the generator still ends with that exception. In a
     * {@see WorkerPool}, the generator also ends if a worker lacks the code of the task ({@see TaskFailedException}).
     *
     * @template TKey
     * @template TValue
     * @template TResult
     *
     * @param iterable<TKey, TValue>    $input
     * @param callable(TValue): TResult $task
     *
     * @return \Generator<TKey, MapOutcome<TResult>>
     *
     * @throws UnserializableException for an unserializable task; from the generator for an unserializable value
     * @throws ExecutorClosedException
     * @throws TaskFailedException     from the generator, if a worker lacks the code of the task
     * @throws CancelledException      from the generator
     */
    public function mapOutcomes(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator;

    /**
     * Does the same as {@see self::mapOutcomes()}, but yields each outcome as soon as it arrives.
     *
     * @template TKey
     * @template TValue
     * @template TResult
     *
     * @param iterable<TKey, TValue>    $input
     * @param callable(TValue): TResult $task
     *
     * @return \Generator<TKey, MapOutcome<TResult>>
     *
     * @throws UnserializableException for an unserializable task; from the generator for an unserializable value
     * @throws ExecutorClosedException
     * @throws TaskFailedException     from the generator, if a worker lacks the code of the task
     * @throws CancelledException      from the generator
     */
    public function mapOutcomesUnordered(
        iterable $input,
        callable $task,
        ?Cancellation $cancellation = null,
    ): \Generator;
}
