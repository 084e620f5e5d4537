<?php

declare(strict_types=1);

namespace Spindle\Command;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Command\Internal\Dispatcher;
use Spindle\Command\Internal\Execution;
use Spindle\Command\Internal\Run;
use Spindle\Internal\CpuCount;
use Spindle\Internal\NumberRange;
use Spindle\LauncherException;
use Spindle\Statistics;

/**
 * Runs commands, so many at once, in a small process of its own.
 *
 * The process, the launcher, is started with the first command, whatever this process holds in memory or has open, and
 * lives until the pool does not: until {@see close()}, or until nothing refers to the pool. Everything that a command
 * has started and that still lives then is ended. Several runs may go on at once, in fibers; they share the slots.
 *
 * With {@see CommandPoolOptions::$on} there is no launcher here: commands run elsewhere, and all verbs are the same.
 */
final class CommandPool implements Statistics
{
    private readonly Dispatcher $dispatcher;

    /**
     * @param int|null        $concurrency commands that run at once; null for as many as there are usable CPUs. Elsewhere: that
     *                                     are there at once, whether they run or wait; null for {@see CommandCarrier::CONCURRENCY}
     * @param int|RetryPolicy $retries     further attempts for a command that fails, with the policy's defaults; 0 for none
     *
     * @throws \ValueError when the concurrency is below 1 or the retries are below 0, or one is above 1,000,000,000
     */
    public function __construct(
        ?int $concurrency = null,
        int|RetryPolicy $retries = 0,
        CommandPoolOptions $options = new CommandPoolOptions(),
    ) {
        $this->dispatcher = new Dispatcher(
            self::atLeastOne($concurrency ?? ($options->on === null ? (new CpuCount())->usable() : CommandCarrier::CONCURRENCY)),
            \is_int($retries) ? new RetryPolicy($retries) : $retries,
            $options,
        );
    }

    public function __destruct()
    {
        $this->dispatcher->close();
    }

    /** Forbidden: closing a copy would close the original. */
    private function __clone() {}

    /**
     * Runs the commands and yields each one's result under its key as soon as it is there.
     *
     * The input is pulled as slots get free, at most {@see CommandPoolOptions::$lookahead} commands ahead of them, and
     * may be endless, block or suspend. Leaving the loop ends what runs and starts nothing more. All commands start from
     * the environment that this process has when the first result is asked for; each has the working directory and the
     * umask that this process has when it is pulled.
     *
     * Cancellation: commands that run are ended with all their descendants, what callbacks and streams have not taken of
     * their output is dropped, their results are yielded as cancelled like those of waiting commands, then
     * CancelledException is thrown. The pool stays usable.
     *
     * @template TKey
     *
     * @param iterable<TKey, Command> $commands
     *
     * @return \Generator<TKey, CommandResult, mixed, RunSummary>
     *
     * @throws LauncherException when the launcher can't be started, or died; results that were there come before it
     * @throws CancelledException
     */
    public function run(iterable $commands, ?Cancellation $cancellation = null): \Generator
    {
        return $this->results($commands, false, $cancellation);
    }

    /**
     * As {@see self::run()}, but in the order of the input: a result that is early waits for those before it.
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
     * Runs one command and returns its result; other fibers go on meanwhile. The command, also one that waits for a slot or
     * is tried again, has the environment, the working directory and the umask that this process has now.
     *
     * Cancellation: the command is ended with all its descendants, or not started, before CancelledException is thrown.
     * What a callback or a stream has not taken of its output is dropped; one that has suspended is left to itself.
     *
     * @throws LauncherException
     * @throws CancelledException
     */
    public function execute(Command $command, ?Cancellation $cancellation = null): CommandResult
    {
        $cancellation?->throwIfRequested();
        $execution = new Execution();
        $ticket = $this->dispatcher->submit($this->dispatcher->open($execution), 0, $command, $execution);
        $this->dispatcher->flush();
        $cancelled = null;
        $subscription = $cancellation?->subscribe(function (CancelledException $exception) use ($ticket, &$cancelled): void {
            $cancelled = $exception;
            $this->dispatcher->cancel([$ticket]);
        });
        try {
            $result = $execution->wait();
        } finally {
            if (!$execution->isOver()) {
                $this->dispatcher->cancel([$ticket]); // waiting is impossible here, or a signal handler has thrown
            }
            if ($cancellation !== null && $subscription !== null) {
                $cancellation->unsubscribe($subscription);
            }
        }

        return $cancelled === null ? $result : throw $cancelled;
    }

    /**
     * Changes how many commands run at once. When it is lowered, running ones finish first.
     *
     * @throws \ValueError       when it is below 1 or above 1,000,000,000
     * @throws LauncherException when there are not the descriptors for so many
     */
    public function resize(int $concurrency): void
    {
        $this->dispatcher->resize(self::atLeastOne($concurrency));
    }

    /**
     * How many commands can run at once for want of descriptors; starts the launcher if it has not been. Elsewhere:
     * {@see CommandCarrier::MOST}.
     *
     * @throws LauncherException
     */
    public function capacity(): int
    {
        return $this->dispatcher->capacity();
    }

    /**
     * Returns the keys of the commands that run now, in the order of the input, as far as is known without asking the
     * launcher. Commands of {@see execute()} have no key and are left out.
     *
     * @return list<mixed>
     */
    public function running(): array
    {
        return $this->dispatcher->running();
    }

    /**
     * Starts nothing more in the runs that are under way: their inputs end, what waits for a slot or a retry is
     * cancelled, and what runs finishes. The pool stays usable.
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
     * Ends the launcher and everything that commands have left running. Runs that are under way fail with
     * LauncherException. Blocks until it is done, at most about half a second longer than the commands take to end;
     * suspends instead where they run elsewhere.
     */
    public function close(): void
    {
        $this->dispatcher->close();
        $this->dispatcher->awaitEnd();
    }

    /**
     * Commands that run, of so many at most; that wait for a slot or their next attempt; that have results, and those of
     * them that are failures; and further attempts.
     */
    public function statistics(): array
    {
        return $this->dispatcher->figures();
    }

    /** @return array<string, mixed> nothing that may be secret, as the environment is and commands may be */
    public function __debugInfo(): array
    {
        return ['concurrency' => $this->dispatcher->concurrency(), 'retry' => $this->dispatcher->retry, 'options' => $this->dispatcher->options];
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
        // A generator of its own, so that it holds the pool while it is iterated.
        return yield from (new Run($this->dispatcher, $commands, $inOrder))->results($cancellation);
    }

    private static function atLeastOne(int $concurrency): int
    {
        return NumberRange::count('The concurrency of a pool', $concurrency, 1);
    }
}
