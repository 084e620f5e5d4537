<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Amp\Cancellation;
use Amp\Future;
use Spindle\Internal\LoadedFiles;
use Spindle\Worker\Internal\InlineMap;
use Spindle\Worker\Internal\InlineTask;
use Spindle\Worker\Internal\TaskCode;

/**
 * Runs tasks in this process, each in a fiber of the event loop: for tests of code that takes an {@see Executor}, and where
 * no processes can be started.
 *
 * What a task is, is given and returns travels as bytes all the same, so that what works here works in a {@see WorkerPool},
 * and what can't travel is refused with the same exception. A loop has one task at a time, so {@see mapUnordered()} has the
 * order of the input as well. Submitted tasks run side by side as far as they suspend. Of a generator one item is made ahead.
 *
 * What only another process can do, this does not: a task that blocks holds up everything, exit() and fatal errors end this
 * process, what a task prints is printed here, globals are shared, nothing is tried again and there is no time limit.
 * A task that runs can't be ended: a cancellation reaches it through {@see TaskContext::cancellation()} if it asks there,
 * and whoever waits is told when it has ended by itself.
 */
final class InlineExecutor implements Executor
{
    /** Signs closures. */
    private readonly string $key;

    /** @param (\Closure(mixed): void)|null $onReport gets what tasks tell by {@see TaskContext::report()}, as it is told */
    public function __construct(private readonly ?\Closure $onReport = null)
    {
        $this->key = random_bytes(32);
        LoadedFiles::mark();
    }

    /** @return array<string, mixed> without the key */
    public function __debugInfo(): array
    {
        return [];
    }

    public function submit(callable $task, ?Cancellation $cancellation = null): Future
    {
        $code = TaskCode::encode($task, $this->key);
        $key = $this->key;

        return InlineTask::start(static fn(): mixed => TaskCode::decode($code, $key)(), null, $this->onReport, $cancellation);
    }

    public function map(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator
    {
        return (new InlineMap($input, TaskCode::encode($task, $this->key), $this->key, $this->onReport))->results($cancellation);
    }

    public function mapUnordered(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator
    {
        return $this->map($input, $task, $cancellation);
    }
}
