<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\Future;
use Spindle\Internal\LoadedFiles;
use Spindle\Internal\MapsInput;
use Spindle\Internal\NotCopyable;
use Spindle\Internal\UnreadResults;
use Spindle\Worker\Internal\InlineActivity;
use Spindle\Worker\Internal\InlineMap;
use Spindle\Worker\Internal\InlineTask;
use Spindle\Worker\Internal\TaskCode;

/**
 * Runs tasks in this process, each in a separate fiber. This class is for tests of code that needs an {@see Executor},
 * and for systems that cannot start processes.
 *
 * Tasks, arguments and results are serialized as for a {@see WorkerPool}, so both executors refuse the same values with
 * the same exception. A call of map() runs one task at a time, so {@see mapUnordered()} also keeps the order of the
 * input. While a submitted task waits, other tasks run. A generator task is at most one item ahead of its reader.
 *
 * Tasks are not isolated. A task that blocks also blocks the rest of the process. exit() or a fatal error in a task
 * ends the process. Tasks share the globals and the output of the process. There are no retries and no time limit. A
 * running task ends early only if it checks {@see TaskContext::cancellation()}. The future of a cancelled task fails
 * when the task has returned or thrown. {@see TaskContext::current()} works only in the fiber of the task, not in
 * fibers that the task starts, for example with async().
 */
final class InlineExecutor implements Executor
{
    use MapsInput;
    use NotCopyable;

    private readonly string $key;

    private readonly InlineActivity $activity;

    /** @param (\Closure(mixed): mixed)|null $onReport called by {@see TaskContext::report()} with each value */
    public function __construct(private readonly ?\Closure $onReport = null)
    {
        $this->key = random_bytes(32);
        $this->activity = new InlineActivity();
        LoadedFiles::record();
    }

    /** @return array<string, mixed> without the key, which is secret */
    public function __debugInfo(): array
    {
        return [];
    }

    public function submit(callable $task, ?Cancellation $cancellation = null): Future
    {
        $code = TaskCode::encode($task, $this->key);
        $key = $this->key;
        $this->activity->mustBeOpen();

        $work = static fn(): mixed => TaskCode::decode($code, $key)();

        return (new InlineTask($this->activity, $work, null, $this->onReport, $cancellation))->start();
    }

    /**
     * Refuses new tasks, and waits until all tasks have ended. For a generator task, close() waits until the caller has
     * read all items or destroyed the generator. A running map() yields the result of its current task. Then map()
     * throws ExecutorClosedException, except after the last value of an array. For other inputs, map() can't know which
     * value is the last.
     *
     * Cancellation: does the same as {@see kill()}.
     *
     * @throws CancelledException
     */
    public function close(?Cancellation $cancellation = null): void
    {
        $this->activity->close($cancellation);
    }

    /**
     * Refuses new tasks. Futures and generators of open tasks, and map() calls, fail with ExecutorClosedException.
     * Tasks that have not started never start. A running task gets a cancellation request, but continues to its end.
     */
    public function kill(): void
    {
        $this->activity->kill();
    }

    private function results(
        iterable $input,
        callable $task,
        ?Cancellation $cancellation,
        bool $inOrder, // has no effect, because one task runs after the other
        bool $keepsFailures,
    ): \Generator {
        $code = TaskCode::encode($task, $this->key);
        $this->activity->mustBeOpen();
        $map = new InlineMap($this->activity, $input, $code, $this->key, $this->onReport, $keepsFailures);

        return $map->results($cancellation, new UnreadResults('ran no task', $cancellation));
    }
}
