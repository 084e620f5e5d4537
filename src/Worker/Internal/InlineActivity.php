<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Worker\ExecutorClosedException;

/** The tasks and maps of an {@see \Spindle\Worker\InlineExecutor} that have not ended. */
final class InlineActivity
{
    /** @var array<int, InlineTask> by object id */
    private array $tasks = [];

    /** @var array<int, InlineMap> by object id */
    private array $maps = [];

    private bool $isClosed = false;

    /** Fibers that wait in {@see close()}. */
    private readonly FiberQueue $closing;

    public function __construct()
    {
        $this->closing = new FiberQueue();
    }

    /** @throws ExecutorClosedException */
    public function mustBeOpen(): void
    {
        if ($this->isClosed) {
            throw ExecutorClosedException::closed();
        }
    }

    public function beginTask(InlineTask $task): void
    {
        $this->tasks[spl_object_id($task)] = $task;
    }

    public function endTask(InlineTask $task): void
    {
        unset($this->tasks[spl_object_id($task)]);
        if ($this->tasks === []) {
            $this->closing->wakeAll();
        }
    }

    /** @throws ExecutorClosedException */
    public function beginMap(InlineMap $map): void
    {
        $this->mustBeOpen();
        $this->maps[spl_object_id($map)] = $map;
    }

    public function endMap(InlineMap $map): void
    {
        unset($this->maps[spl_object_id($map)]);
    }

    /** @throws CancelledException when the wait is cancelled; close() calls {@see kill()} first */
    public function close(?Cancellation $cancellation): void
    {
        $this->isClosed = true;
        foreach ($this->maps as $map) {
            $map->close();
        }
        if ($this->tasks !== []) {
            $this->closing->waitOrKill($cancellation, $this->kill(...));
        }
    }

    public function kill(): void
    {
        $this->isClosed = true;
        $reason = ExecutorClosedException::killed();
        foreach ($this->maps as $map) {
            $map->kill($reason);
        }
        foreach ($this->tasks as $task) {
            $task->kill($reason);
        }
        $this->tasks = [];
        $this->closing->wakeAll();
    }
}
