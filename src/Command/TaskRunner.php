<?php

declare(strict_types=1);

namespace Spindle\Command;

use Spindle\Command\Internal\Capture;
use Spindle\Command\Internal\CaptureStore;
use Spindle\LauncherException;

/**
 * Runs shell lines through a {@see CommandPool}. The API is that of the library TaskRunner.php, so code for that
 * library runs unchanged. The class can also be loaded under its name in the library, `TaskRunner\TaskRunner`.
 *
 * @see https://github.com/tomlau10/TaskRunner.php
 */
final class TaskRunner
{
    private readonly CommandPool $pool;

    /** Serialized tasks that were added and not run yet, one after the other. An unlinked file holds large amounts. */
    private Capture $tasks;
    private int $total = 0;

    private bool $started = false;

    /** @throws \ValueError when the maximum number of concurrent tasks is below 1 or above 1,000,000,000 */
    public function __construct(int $parallel)
    {
        $this->pool = new CommandPool($parallel);
        $this->tasks = self::noTasks();
    }

    /**
     * Adds a task. {@see runAndWait()} runs it.
     *
     * @param mixed $id value that the callback gets as `id` with the task's result; must be serializable
     *
     * @throws \LogicException during {@see runAndWait()}
     * @throws \ValueError     when the line contains a NUL byte
     * @throws StreamException when the task can't be stored, for example on a full disk; other tasks are not affected
     */
    public function add(mixed $id, string $cmd): void
    {
        if ($this->started) {
            throw new \LogicException(
                'add() was called during runAndWait(). Add tasks before runAndWait(), or after it has returned',
            );
        }
        Command::shell($cmd);
        $task = serialize([$id, $cmd]);
        $length = $this->tasks->length;
        try {
            $this->tasks->append(pack('V', \strlen($task)) . $task);
        } catch (StreamException $failed) {
            $this->tasks->truncate($length);

            throw $failed;
        }
        ++$this->total;
    }

    /**
     * Runs the tasks that were added, and returns when all have ended. More tasks can be added and run after that.
     *
     * The status of a task is its exit code, or 128 + n after signal n, as in a shell. A task that could not be started
     * has the status 127 (no such program) or 126. The status is 255 if the exit code is unknown, or if it is 0 and the
     * output could not be stored. After a failed start, an unknown code or lost output, stderr ends with the reason.
     *
     * @param (callable(array{id: mixed, status: int, stdout: string, stderr: string}, int, int): mixed)|null $callback
     *        called for each result, with the number of ended tasks and the number of all tasks
     *
     * @throws \LogicException   when the callback calls this method
     * @throws LauncherException when not all tasks could be run. Otherwise, the callback has got all results
     */
    public function runAndWait(?callable $callback = null): void
    {
        if ($this->started) {
            throw new \LogicException('runAndWait() is already running. It cannot be called in its own callback');
        }
        $this->started = true;
        $completed = 0;
        try {
            foreach ($this->pool->run(self::commands($this->tasks)) as $id => $result) {
                ++$completed;
                if ($callback !== null) {
                    $callback([
                        'id' => $id,
                        'status' => self::status($result),
                        'stdout' => $result->stdout(),
                        'stderr' => $result->stderr() . ($result->error === null ? '' : "{$result->error}\n"),
                    ], $completed, $this->total);
                }
            }
        } finally {
            $this->tasks = self::noTasks();
            $this->total = 0;
            $this->started = false;
        }
    }

    private static function status(CommandResult $result): int
    {
        return match (true) {
            $result->signal !== null => 128 + $result->signal,
            $result->exitCode === null, $result->exitCode === 0 && $result->error !== null => 255,
            default => $result->exitCode,
        };
    }

    private static function noTasks(): Capture
    {
        return new Capture(new CaptureStore(null));
    }

    /** @return \Generator<mixed, Command> commands by the id of the task */
    private static function commands(Capture $tasks): \Generator
    {
        $stream = $tasks->toStream();
        while (($head = (string) stream_get_contents($stream, 4)) !== '') {
            /** @var array{1: positive-int} $length */
            $length = unpack('V', $head);
            /** @var array{mixed, string} $task */
            $task = unserialize((string) stream_get_contents($stream, $length[1]));
            yield $task[0] => Command::shell($task[1]);
        }
    }
}
