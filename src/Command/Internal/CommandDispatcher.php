<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Amp\Cancellation;
use Spindle\Command\Command;
use Spindle\Command\CommandFailedException;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\RetryPolicy;
use Spindle\Command\RunSummary;
use Spindle\Command\StreamException;
use Spindle\Internal\Async\CallbackFiber;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\Async\LoopTurn;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Clock;
use Spindle\Internal\Excerpt;
use Spindle\Internal\FileSizeLimit;
use Spindle\Internal\FileType;
use Spindle\Internal\FreeMemory;
use Spindle\Internal\IsolatedCall;
use Spindle\Internal\Preload;
use Spindle\Internal\SelfWaitException;
use Spindle\Internal\UnlinkedFile;
use Spindle\Internal\WorkingDirectory;
use Spindle\LauncherException;

/** Passes commands to the backend, and outcomes to the commands' owners (Run, Execution). Decides about retries. */
final class CommandDispatcher implements AttemptEvents
{
    /** Pause before the next try to start a command whose launcher had no free descriptors or processes, in seconds. */
    private const EXHAUSTED_PAUSE_SECONDS = 0.05;

    /**
     * @var array<int, self> dispatchers with pending commands, by object id. The array keeps them in memory: if only a
     *      suspended fiber referred to a dispatcher, PHP could destroy both
     */
    private static array $busy = [];

    public readonly CaptureStore $store;

    public readonly CommandBackend $backend;
    private readonly DelayedRetries $delayedRetries;
    private readonly ?StepLog $log;

    /** Id of the process that last called {@see open()}. In a fork of that process, getmypid() returns another id. */
    private int $ownerPid = 0;

    private bool $isClosed = false;

    /** Fibers that wait in {@see close()} until all commands have outcomes. */
    private readonly FiberQueue $closing;

    private readonly ?DelayedStarts $delayedStarts;

    /** @var array<int, PendingCommand> ended commands with output that is still being delivered, by id */
    private array $delivering = [];

    /** @var array<int, true> ids of commands whose owners have not received an outcome */
    private array $withoutOutcome = [];

    private readonly Lanes $lanes;
    private int $lastId = 0;
    private int $finishedCount = 0;
    private int $failedCount = 0;
    private int $retryCount = 0;

    public function __construct(
        public int $concurrency,
        public readonly RetryPolicy $retry,
        public readonly CommandPoolOptions $options,
    ) {
        Preload::load(
            Clock::class,
            IsolatedCall::class,
            CannotWaitException::class,
            Condition::class,
            FiberQueue::class,
            LoopTurn::class,
            StreamException::class,
            LauncherException::class,
            CommandFailedException::class,
            CaptureStream::class,
            SharedFile::class,
            ResultFactory::class,
            RunSummary::class,
            Execution::class,
            Run::class,
            InputFeeder::class,
            CallbackFiber::class,
            Sink::class,
            FileSizeLimit::class,
            FileType::class,
            FreeMemory::class,
            CommandRequest::class,
            ShellLine::class,
            WorkingDirectory::class,
            PendingCommand::class,
            Excerpt::class,
        );
        $this->lanes = new Lanes();
        $this->closing = new FiberQueue();
        $this->store = new CaptureStore($options->temporaryDirectory);
        $this->log = $options->logger === null ? null : new StepLog($options->logger);
        $filePrefix = UnlinkedFile::prefix($this->store->directory);
        $this->backend = $options->transport === null
            ? new LauncherBackend($options, $concurrency, $this->log, $filePrefix, $this)
            : new TransportBackend($options->transport, $concurrency, $this);
        $this->delayedRetries = new DelayedRetries($this);
        $this->delayedStarts = $options->delay <= 0.0 ? null : new DelayedStarts($options->delay, $this);
    }

    /**
     * Opens a lane and returns its number. A lane is the backend's queue for the commands of one owner, such as a run.
     * Lanes get free slots in rotation. All commands of the owner get the environment that this process has now.
     *
     * @throws LauncherException when a launcher can't be started, when the pool was closed, or in a fork
     */
    public function open(PendingCommandOwner $owner): int
    {
        if ($this->isClosed) {
            throw LauncherException::closed();
        }
        $this->refuseFork();
        $lane = $this->lanes->open($owner);
        $this->backend->prepare();
        $this->ownerPid = (int) getmypid();

        return $lane;
    }

    /** @return array<int, PendingCommand> running commands of run() and runInOrder(), in the order of submission */
    public function running(): array
    {
        return Run::select($this->backend->running());
    }

    /** @return array<int, PendingCommand> commands of runs without an outcome, in the order of submission */
    public function commands(): array
    {
        return Run::select($this->allCommands());
    }

    /** @return array<string, int> numbers that CommandPool::statistics() describes, by name */
    public function statistics(): array
    {
        $running = \count($this->backend->running());

        return [
            'in_use' => $running,
            'max' => $this->concurrency,
            'waiting' => \count($this->backend->commands()) - $running + \count($this->delayedCommands()),
            'finished_total' => $this->finishedCount,
            'failed_total' => $this->failedCount,
            'retried_total' => $this->retryCount,
        ];
    }

    /** Accepts a command for the next {@see CommandBackend::flush()}. With a delay, {@see DelayedStarts} starts it. */
    public function submit(int $lane, mixed $key, Command $command, PendingCommandOwner $owner): PendingCommand
    {
        $id = $this->lastId = $this->lastId === 0xFFFFFFFF ? 1 : $this->lastId + 1;
        $environment = $this->lanes->environmentOf($owner);
        $pending = new PendingCommand($id, $lane, $key, $command, $owner, $this->store, $environment);
        $this->delayedStarts === null ? $this->backend->assign($pending) : $this->delayedStarts->add($pending);
        $this->withoutOutcome[$id] = true;
        self::$busy[spl_object_id($this)] = $this;

        return $pending;
    }

    /** @param array<int, PendingCommand> $commands commands to end, or not to start; undelivered output is dropped */
    public function cancel(array $commands): void
    {
        // The newest command is cancelled first. Otherwise, it could start in the slot of a cancelled older command.
        foreach (array_reverse($commands) as $pending) {
            if ($pending->cancelled) {
                continue;
            }
            $pending->cancelled = true;
            if (!$this->cancelDelayed($pending)) {
                $pending->feeder?->stop();
                $this->backend->cancel($pending);
                $pending->discardOutput();
            }
        }
        $this->backend->flush();
    }

    public function cancelWaiting(): void
    {
        $this->lanes->cancelWaiting();
    }

    /** Cancels a command if it waits; the next flush() sends the request. A running command gets no further attempt. */
    public function withdraw(PendingCommand $pending): void
    {
        $pending->isLastAttempt = true;
        if (!$this->cancelDelayed($pending)) {
            $this->backend->withdraw($pending);
        }
    }

    public function setPaused(bool $isPaused): void
    {
        $this->backend->setPaused($isPaused);
        $this->delayedStarts?->setPaused($isPaused);
    }

    public function resize(int $concurrency): void
    {
        $this->backend->resize($concurrency);
        $this->concurrency = $concurrency;
        $this->delayedStarts?->schedule();
    }

    public function cancelAll(): void
    {
        $this->cancel($this->allCommands());
    }

    /** Does the work of CommandPool::close(). Once the pool is closed, the caller must call awaitEnd() of $backend. */
    public function close(?Cancellation $cancellation): void
    {
        $this->refuseFork();
        foreach ($this->allCommands() as $pending) {
            if ($pending->callbackRunsInCurrentFiber()) {
                throw SelfWaitException::ofClose('An output callback or the input of a command calls close()');
            }
        }
        $this->isClosed = true;
        $this->lanes->close();
        $this->setPaused(false);
        if ($this->withoutOutcome !== []) {
            $this->closing->waitOrKill($cancellation, $this->kill(...));
        }
        $this->kill();
    }

    public function kill(?\Closure $reason = null): void
    {
        $this->isClosed = true;
        $commands = $this->allCommands();
        $this->delayedRetries->clear();
        $this->delayedStarts?->clear();
        $this->delivering = [];
        $this->backend->close();
        $this->onLost($commands, $reason ?? LauncherException::killed(...));
        $this->closing->wakeAll();
    }

    public function onStarted(PendingCommand $pending): void
    {
        $this->delayedStarts?->onStarted($pending);
    }

    public function onEnded(PendingCommand $pending, CommandResult $result): void
    {
        $pending->feeder?->stop();
        $this->delayedStarts?->schedule();
        if ($pending->sinks === []) {
            $this->retryOrSettle($pending, $result);

            return;
        }
        // The result is handled when callbacks and streams have received all output.
        $this->delivering[$pending->id] = $pending;
        $pending->whenDelivered(function () use ($pending, $result): void {
            if (!isset($this->delivering[$pending->id])) {
                return; // the pool was killed
            }
            unset($this->delivering[$pending->id]);
            $this->retryOrSettle($pending, $result->withError($pending->ioError));
        });
    }

    public function onLost(array $commands, \Closure $reason): void
    {
        $keys = [];
        foreach ($commands as $pending) {
            $keys[spl_object_id($pending->owner)][] = $pending->key;
        }
        $exceptions = array_map($reason, $keys);
        foreach ($commands as $pending) {
            $pending->launcher = null;
            $this->notifyFailed($pending, $exceptions[spl_object_id($pending->owner)]);
        }
    }

    public function onExhausted(PendingCommand $pending): void
    {
        $this->delayedStarts?->schedule();
        $this->delayedRetries->add($pending, self::EXHAUSTED_PAUSE_SECONDS);
    }

    public function onRetryDue(PendingCommand $pending): void
    {
        $pending->resetOutput();
        $this->delayedStarts === null ? $this->onStartDue($pending) : $this->delayedStarts->add($pending);
    }

    /** Gives the backend a command that waited in this process. If that fails, the command's owner gets the reason. */
    public function onStartDue(PendingCommand $pending): void
    {
        try {
            $this->refuseFork($pending->key);
            $this->backend->assign($pending);
            $this->backend->flush();
        } catch (LauncherException|\ValueError $why) {
            $this->notifyFailed($pending, $why);
        }
    }

    public function hasFreeSlot(): bool
    {
        return \count($this->backend->commands()) < $this->concurrency;
    }

    /** @throws LauncherException with these keys, in a fork of a process that waits for outcomes */
    private function refuseFork(mixed ...$unfinished): void
    {
        if ($this->withoutOutcome !== [] && $this->ownerPid !== getmypid()) {
            throw LauncherException::forked(array_values($unfinished));
        }
    }

    /** Cancels a command if it waits in this process for its first or next attempt. Returns whether it waited. */
    private function cancelDelayed(PendingCommand $pending): bool
    {
        if (!$this->delayedRetries->remove($pending) && $this->delayedStarts?->remove($pending) !== true) {
            return false;
        }
        $this->settle($pending, ResultFactory::cancelledBeforeStart($pending));

        return true;
    }

    /** @return array<int, PendingCommand> all commands without an outcome, by id */
    private function allCommands(): array
    {
        return $this->backend->commands() + $this->delayedCommands() + $this->delivering;
    }

    /** @return array<int, PendingCommand> commands that wait in this process for their first or next attempt, by id */
    private function delayedCommands(): array
    {
        return $this->delayedRetries->commands() + ($this->delayedStarts?->commands() ?? []);
    }

    private function retryOrSettle(PendingCommand $pending, CommandResult $result): void
    {
        $thrown = $pending->thrown;
        if ($thrown !== null) {
            $this->notifyFailed($pending, $thrown);
        } elseif (!$result->succeeded() && $pending->mayRetry() && $this->retry->shouldRetry($result)) {
            ++$this->retryCount;
            $delay = $this->retry->delayAfter($pending->attempts);
            $this->delayedRetries->add($pending, $delay);
            $this->log?->write('Retry in {delay} s: {result}', ['delay' => $delay, 'result' => $result]);
        } else {
            $this->settle($pending, $result);
        }
    }

    private function settle(PendingCommand $pending, CommandResult $result): void
    {
        ++$this->finishedCount;
        $this->failedCount += (int) !$result->succeeded();
        if ($pending->stdout->hasOwnFile() || $pending->stderr->hasOwnFile()) {
            $this->store->share($pending->stdout, $pending->stderr);
        }
        $this->forget($pending);
        $pending->owner->finished($pending, $result);
        $this->log?->write('Ended: {result}', ['result' => $result]);
    }

    private function notifyFailed(PendingCommand $pending, \Throwable $reason): void
    {
        $this->delayedStarts?->schedule();
        $this->forget($pending);
        $pending->owner->failed($pending, $reason);
    }

    private function forget(PendingCommand $pending): void
    {
        $pending->release();
        unset($this->withoutOutcome[$pending->id]);
        if ($this->withoutOutcome === []) {
            unset(self::$busy[spl_object_id($this)]);
            if ($this->isClosed) {
                $this->closing->wakeAll();
            }
        }
    }
}
