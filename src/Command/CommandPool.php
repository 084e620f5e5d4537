<?php

declare(strict_types=1);

namespace Spindle\Command;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Command\Internal\CommandDispatcher;
use Spindle\Command\Internal\Execution;
use Spindle\Command\Internal\PendingCommand;
use Spindle\Command\Internal\Run;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\CommandTransport;
use Spindle\Internal\CpuCount;
use Spindle\Internal\NotCopyable;
use Spindle\Internal\NumberRange;
use Spindle\Internal\UnreadResults;
use Spindle\LauncherException;
use Spindle\Lifecycle;
use Spindle\Statistics;

/**
 * Runs up to `$concurrency` commands at the same time. Small helper processes, the launchers, start the commands.
 *
 * The pool starts the launchers when it gets the first command. The launchers exit after {@see close()} or
 * {@see kill()}, or when nothing refers to the pool any more. Before a launcher exits, it ends all processes that its
 * commands have started, even background processes. `$concurrency` limits the commands of all fibers together.
 *
 * With {@see CommandPoolOptions::$transport}, the transport runs the commands, for example on other machines.
 */
final class CommandPool implements Lifecycle, Statistics
{
    use NotCopyable;

    private readonly CommandDispatcher $dispatcher;

    /**
     * @param int|null $concurrency maximum number of running commands; null for the number of usable CPUs. With a
     *                              transport: maximum number of commands that run or wait in the transport; null for
     *                              256
     * @param int|RetryPolicy $retries maximum number of retries of a failed command, with default pauses; or a policy
     *
     * @throws \ValueError when the concurrency is below 1 or above 1,000,000,000 (with a transport: above 10,000), or
     *                     when the retries are below 0 or above 1,000,000,000
     */
    public function __construct(
        ?int $concurrency = null,
        int|RetryPolicy $retries = 0,
        CommandPoolOptions $options = new CommandPoolOptions(),
    ) {
        $this->dispatcher = new CommandDispatcher(
            self::checkedConcurrency(
                $concurrency ?? ($options->transport === null
                    ? (new CpuCount())->usable()
                    : CommandTransport::DEFAULT_CONCURRENCY),
            ),
            \is_int($retries) ? new RetryPolicy($retries) : $retries,
            $options,
        );
    }

    public function __destruct()
    {
        if (isset($this->dispatcher)) { // PHP creates an object before it evaluates the arguments, which may suspend
            $this->dispatcher->kill(LauncherException::destroyed(...));
        }
    }

    /**
     * Runs the commands. Yields each result as soon as its command has ended, with the command's key.
     *
     * A run reads ahead of the caller's loop: one command per slot, and up to {@see CommandPoolOptions::$lookahead}
     * further commands. The iterable may be endless, block or suspend. When the caller leaves its loop, the pool ends
     * the running commands of this run, and starts no more of its commands. If `$commands` throws, no more commands are
     * read. If an output callback or the iterable input of a command throws, all other commands of the run are
     * cancelled. Before run() throws such an exception, it yields the remaining results.
     *
     * All commands get the environment that this process has when the caller begins to iterate over the results. Each
     * command gets the working directory and the umask that this process has when the pool reads the command.
     *
     * Cancellation: running commands are ended with all their descendants. Output that callbacks and streams have not
     * received is dropped. Running and waiting commands get cancelled results. When the caller has read these results,
     * CancelledException is thrown. The pool stays usable.
     *
     * @template TKey
     *
     * @param iterable<TKey, Command> $commands
     *
     * @return \Generator<TKey, CommandResult, mixed, RunSummary>
     *
     * @throws LauncherException when a launcher can't be started, when a launcher that had commands of this run has
     *                           died, or when the pool was closed. Known results are yielded first
     * @throws CancelledException
     */
    public function run(iterable $commands, ?Cancellation $cancellation = null): \Generator
    {
        return $this->results($commands, false, $cancellation, new UnreadResults('ran no command', $cancellation));
    }

    /**
     * Runs the commands like {@see self::run()}, but yields the results in the order of the input.
     *
     * @template TKey
     *
     * @param iterable<TKey, Command> $commands
     *
     * @return \Generator<TKey, CommandResult, mixed, RunSummary>
     *
     * @throws LauncherException
     * @throws CancelledException
     */
    public function runInOrder(iterable $commands, ?Cancellation $cancellation = null): \Generator
    {
        return $this->results($commands, true, $cancellation, new UnreadResults('ran no command', $cancellation));
    }

    /**
     * Runs one command and returns its result. Suspends only the calling fiber.
     *
     * All attempts use the environment, working directory and umask that this process has at the time of the call.
     *
     * Cancellation: ends a running command with all its descendants. A waiting command is not started. In both cases,
     * throws CancelledException. Output that was not delivered is dropped. A suspended callback is not interrupted.
     *
     * @throws LauncherException
     * @throws CancelledException
     */
    public function execute(Command $command, ?Cancellation $cancellation = null): CommandResult
    {
        $cancellation?->throwIfRequested();
        FiberSwitch::ensurePossible();
        $execution = new Execution($cancellation);
        $pending = $this->dispatcher->submit($this->dispatcher->open($execution), 0, $command, $execution);
        $this->dispatcher->backend->flush();
        $cancelled = null;
        $subscription = $cancellation?->subscribe(
            function (CancelledException $exception) use ($pending, &$cancelled): void {
                $cancelled = $exception;
                $this->dispatcher->cancel([$pending]);
            },
        );
        try {
            $result = $execution->wait();
        } finally {
            if (!$execution->isOver()) {
                // wait() has thrown, because PHP can't suspend this fiber now, or because a signal handler has thrown.
                $this->dispatcher->cancel([$pending]);
            }
            $cancellation?->unsubscribe((string) $subscription);
        }

        return $cancelled === null ? $result : throw $cancelled;
    }

    /**
     * Changes the maximum number of running commands. If the number gets lower, running commands still finish.
     *
     * @throws \ValueError       when the number is below 1 or above 1,000,000,000 (with a transport: above 10,000)
     * @throws LauncherException when the file descriptor limit is too low for the number, or when a launcher can't be
     *         started
     */
    public function resize(int $concurrency): void
    {
        $this->dispatcher->resize(self::checkedConcurrency($concurrency));
    }

    /**
     * Returns the largest concurrency for which the launchers have enough file descriptors. {@see resize()} accepts no
     * larger number. Starts missing launchers, and suspends until a launcher is ready. With a transport, returns
     * 10,000.
     *
     * @throws LauncherException when a launcher can't be started
     */
    public function maxConcurrency(): int
    {
        return $this->dispatcher->backend->maxConcurrency();
    }

    /**
     * Returns the keys of the running commands, in the order in which the pool has read the commands. Commands of
     * {@see execute()} have no key, so they are left out. The list may lag slightly behind, because launchers report
     * starts and ends later.
     *
     * @return list<mixed>
     */
    public function runningKeys(): array
    {
        $key = static fn(PendingCommand $pending): mixed => $pending->key;

        return array_values(array_map($key, $this->dispatcher->running()));
    }

    /** Starts no commands and no retries until {@see resume()} or {@see close()}. Running commands continue. */
    public function pause(): void
    {
        $this->dispatcher->setPaused(true);
    }

    /** Starts commands again after {@see pause()}. */
    public function resume(): void
    {
        $this->dispatcher->setPaused(false);
    }

    /**
     * Ends the running command that has this key in the iterable of {@see self::run()} or {@see runInOrder()}. The
     * command gets a cancelled result. If several running commands have the key, only the command that was read first
     * is ended. A command counts as running as soon as it has a slot. If no running command has the key, the call ends
     * a command that waits for a retry. If the command has already ended, but callbacks have not received all of its
     * output, the call only prevents a retry. In all other cases, the call does nothing.
     */
    public function cancel(mixed $key): void
    {
        $hasKey = static fn(PendingCommand $pending): bool => $pending->key === $key;
        $commands = array_filter($this->dispatcher->commands(), $hasKey);
        $retried = array_filter($commands, static fn(PendingCommand $pending): bool => $pending->attempts > 0);
        $running = array_filter($this->dispatcher->running(), $hasKey);
        $begun = $running + $retried;
        $first = reset($begun);
        if ($first !== false && $first->launcher === null && !isset($running[$first->id])) {
            $this->dispatcher->withdraw($first); // waits for a retry, or callbacks get its last output
        } elseif ($first !== false && ($first->launcher === null || $first->attempts > 0)) {
            $this->dispatcher->cancel([$first]); // runs in a transport, or runs again after a failure
        } else {
            PendingCommand::cancelFirstRunning(array_values($begun + $commands)); // only launchers know which run
        }
    }

    /**
     * Returns the output that a running command has written so far. The key is the command's key in the iterable of
     * {@see self::run()} or {@see runInOrder()}. If several running commands have the key, the method returns the
     * output of the first that has written something.
     *
     * The launcher may keep up to 64 KiB of the output until the command ends. A call requests these bytes, but does
     * not wait for them, so only a later call returns them. With a transport, both strings are empty, because output
     * arrives only when the command has ended.
     *
     * @param int $maxBytes maximum bytes of each returned string; longer output loses its beginning
     *
     * @return array{string, string} standard output and standard error; both '' if no running command has the key
     */
    public function partialOutput(mixed $key, int $maxBytes): array
    {
        $output = ['', ''];
        // The pool does not know exactly which commands run, but only a running command has output.
        foreach ($this->dispatcher->commands() as $pending) {
            if ($pending->key === $key && $pending->launcher !== null) {
                $pending->requestOutput();
                $output = $output === ['', '']
                    ? [$pending->stdout->tail($maxBytes), $pending->stderr->tail($maxBytes)]
                    : $output;
            }
        }

        return $output;
    }

    /**
     * Stops the reading of further commands in all current runs, and cancels their commands that wait for a slot or a
     * retry. Running commands finish, and are not retried. The pool stays usable.
     */
    public function cancelWaiting(): void
    {
        $this->dispatcher->cancelWaiting();
    }

    /**
     * Ends all running commands and cancels all waiting commands, of all runs and {@see execute()} calls.
     *
     * The commands get cancelled results. Current runs continue with the rest of their input, unless
     * {@see cancelWaiting()} was called before. The pool stays usable.
     */
    public function cancelAll(): void
    {
        $this->dispatcher->cancelAll();
    }

    /**
     * Refuses new commands, waits until all accepted commands and their retries have ended, and ends the launchers.
     *
     * A current run yields the results of the commands that it has read. Then the run throws LauncherException,
     * unless it has reached the end of its input. An {@see execute()} call returns its result.
     *
     * Cancellation: ends the remaining commands as {@see kill()} does.
     *
     * @throws CancelledException
     * @throws LauncherException in a forked child process, if a command had no result at the time of the fork
     * @throws \LogicException when an output callback or the input of a command of this pool calls close(): the call
     *     would wait for itself. The pool remains unchanged
     */
    public function close(?Cancellation $cancellation = null): void
    {
        try {
            $this->dispatcher->close($cancellation);
        } catch (CancelledException $cancelled) {
            // A finally block would also wait after a LogicException, which leaves the pool open.
            $this->dispatcher->backend->awaitEnd();
            throw $cancelled;
        }
        $this->dispatcher->backend->awaitEnd();
    }

    /**
     * Ends the launchers and all processes that commands have started. Current runs and {@see execute()} calls fail
     * with LauncherException.
     *
     * Blocks until the processes have ended. A process that ignores SIGTERM is killed after half a second, or after
     * {@see CommandPoolOptions::$gracePeriod} if that is shorter. With a transport, suspends until the transport has
     * ended the commands. Before PHP 8.4, a destructor can't suspend, and so does not wait for the transport.
     */
    public function kill(): void
    {
        $this->dispatcher->kill();
        $this->dispatcher->backend->awaitEnd();
    }

    /**
     * Returns the current numbers of commands:
     * - `in_use`: running commands; `max`: the concurrency; `waiting`: commands that wait for a slot or a retry
     * - `finished_total`: commands with a result; `failed_total`: commands with a failed result
     * - `retried_total`: retries
     */
    public function statistics(): array
    {
        return $this->dispatcher->statistics();
    }

    /** @return array<string, mixed> without environment and commands, which may be secret */
    public function __debugInfo(): array
    {
        return [
            'concurrency' => $this->dispatcher->concurrency,
            'retry' => $this->dispatcher->retry,
            'options' => $this->dispatcher->options,
        ];
    }

    /**
     * @template TKey
     *
     * @param iterable<TKey, Command> $commands
     *
     * @return \Generator<TKey, CommandResult, mixed, RunSummary>
     */
    private function results(
        iterable $commands,
        bool $inOrder,
        ?Cancellation $cancellation,
        UnreadResults $unread,
    ): \Generator {
        $unread->begin();
        // The generator refers to the pool. So the pool is not destroyed while the caller iterates.
        return yield from (new Run($this->dispatcher, $commands, $inOrder, $cancellation))->results();
    }

    private static function checkedConcurrency(int $concurrency): int
    {
        return NumberRange::checkCount('The concurrency of a pool', $concurrency, 1);
    }
}
