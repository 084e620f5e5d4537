<?php

declare(strict_types=1);

namespace Spindle\Command;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Command\Internal\CommandDispatcher;
use Spindle\Command\Internal\Execution;
use Spindle\Command\Internal\Run;
use Spindle\Internal\CpuCount;
use Spindle\Internal\NumberRange;
use Spindle\LauncherException;
use Spindle\Statistics;

/**
 * Runs up to `$concurrency` commands at once, started by small helper processes, the launchers.
 *
 * The launchers are started with the first command. They live until {@see close()}, or until nothing refers to the
 * pool. Then everything that commands have started is ended. Runs in several fibers share the slots.
 *
 * With {@see CommandPoolOptions::$on} commands run in another place, without launchers here. All methods are the same.
 */
final class CommandPool implements Statistics
{
    private readonly CommandDispatcher $dispatcher;

    /**
     * @param int|null        $concurrency commands that run at once; null for the number of usable CPUs. With a
     *                                     carrier: commands that it has at once, running or waiting; null for
     *                                     {@see CommandCarrier::DEFAULT_CONCURRENCY}
     * @param int|RetryPolicy $retries     retries of a failed command, with the defaults of RetryPolicy; or a policy
     *
     * @throws \ValueError when the concurrency is below 1 or the retries are below 0, or one is above 1,000,000,000
     */
    public function __construct(
        ?int $concurrency = null,
        int|RetryPolicy $retries = 0,
        CommandPoolOptions $options = new CommandPoolOptions(),
    ) {
        $this->dispatcher = new CommandDispatcher(
            self::atLeastOne(
                $concurrency
                    ?? ($options->on === null ? (new CpuCount())->usable() : CommandCarrier::DEFAULT_CONCURRENCY),
            ),
            \is_int($retries) ? new RetryPolicy($retries) : $retries,
            $options,
        );
    }

    public function __destruct()
    {
        $this->dispatcher->close();
    }

    /** Forbids copies: closing a copy would close the original. */
    private function __clone() {}

    /**
     * Runs the commands and yields the result of each under its key as soon as it is known.
     *
     * The input is pulled as slots get free, at most {@see CommandPoolOptions::$lookahead} commands ahead of them. It
     * may be endless, block or suspend. Leaving the loop ends the running commands and starts no others. All commands
     * start from the environment that this process has when the first result is requested. Each has the working
     * directory and the umask that this process has when the command is pulled.
     *
     * Cancellation: running commands are ended with all their descendants. Output that callbacks and streams have not
     * received is dropped. Results of running and of waiting commands are yielded as cancelled, then CancelledException
     * is thrown. The pool stays usable.
     *
     * @template TKey
     *
     * @param iterable<TKey, Command> $commands
     *
     * @return \Generator<TKey, CommandResult, mixed, RunSummary>
     *
     * @throws LauncherException when the launcher can't be started, or died; results known by then are yielded first
     * @throws CancelledException
     */
    public function run(iterable $commands, ?Cancellation $cancellation = null): \Generator
    {
        return $this->results($commands, false, $cancellation);
    }

    /**
     * Like {@see self::run()}, but yields results in the order of the input. Each result waits for those before it.
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
        return $this->results($commands, true, $cancellation);
    }

    /**
     * Runs one command and returns its result. Other fibers run while this one waits.
     *
     * All attempts have this process's environment, working directory and umask at the time of the call.
     *
     * Cancellation: the command is ended with all its descendants, or not started, before CancelledException is thrown.
     * Output that a callback or a stream has not received is dropped. A callback that has suspended is not interrupted.
     *
     * @throws LauncherException
     * @throws CancelledException
     */
    public function execute(Command $command, ?Cancellation $cancellation = null): CommandResult
    {
        $cancellation?->throwIfRequested();
        $execution = new Execution();
        $pending = $this->dispatcher->submit($this->dispatcher->open($execution), 0, $command, $execution);
        $this->dispatcher->flush();
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
                $this->dispatcher->cancel([$pending]); // the fiber can't wait here, or a signal handler has thrown
            }
            if ($cancellation !== null && $subscription !== null) {
                $cancellation->unsubscribe($subscription);
            }
        }

        return $cancelled === null ? $result : throw $cancelled;
    }

    /**
     * Changes how many commands run at once. Running commands above a lower number finish first.
     *
     * @throws \ValueError       when it is below 1 or above 1,000,000,000
     * @throws LauncherException when the file descriptor limit is too low
     */
    public function resize(int $concurrency): void
    {
        $this->dispatcher->resize(self::atLeastOne($concurrency));
    }

    /**
     * Returns how many commands the file descriptor limit allows at once; starts the launchers if necessary. With a
     * carrier, returns {@see CommandCarrier::MAX_CONCURRENCY}.
     *
     * @throws LauncherException
     */
    public function capacity(): int
    {
        return $this->dispatcher->capacity();
    }

    /**
     * Returns the keys of the commands that run now, in the order of the input, as far as known without asking the
     * launchers. Commands of {@see execute()} have no key and are left out.
     *
     * @return list<mixed>
     */
    public function running(): array
    {
        return $this->dispatcher->running();
    }

    /**
     * Ends the inputs of all current runs. Commands that wait for a slot or a retry are cancelled, and running ones
     * finish. The pool stays usable.
     */
    public function drain(): void
    {
        $this->dispatcher->drain();
    }

    /** Ends all commands of all runs; their results are yielded as cancelled. The pool stays usable. */
    public function kill(): void
    {
        $this->dispatcher->cancelAll();
    }

    /**
     * Ends the launchers and everything that commands have left running. Current runs fail with LauncherException.
     *
     * Blocks at most about half a second longer than the commands take to end. With a carrier, suspends instead.
     */
    public function close(): void
    {
        $this->dispatcher->close();
        $this->dispatcher->awaitEnd();
    }

    /**
     * Returns counts of commands.
     *
     * - `in_use`: running commands; `max`: their limit; `waiting`: commands that wait for a slot or a retry
     * - `finished_total`: commands with a result; `failed_total`: failed ones among these; `retried_total`: retries
     */
    public function statistics(): array
    {
        return $this->dispatcher->statistics();
    }

    /** @return array<string, mixed> no environment and no commands, because they may be secret */
    public function __debugInfo(): array
    {
        return [
            'concurrency' => $this->dispatcher->concurrency(),
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
    private function results(iterable $commands, bool $inOrder, ?Cancellation $cancellation): \Generator
    {
        // A generator of the pool itself, so that the pool lives while the caller iterates.
        return yield from (new Run($this->dispatcher, $commands, $inOrder))->results($cancellation);
    }

    private static function atLeastOne(int $concurrency): int
    {
        return NumberRange::count('The concurrency of a pool', $concurrency, 1);
    }
}
