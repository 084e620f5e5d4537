<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\Command;
use Spindle\Command\CommandFailedException;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\RetryPolicy;
use Spindle\Command\RunSummary;
use Spindle\Command\SpoolException;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Fibers;
use Spindle\Internal\IsolatedCall;
use Spindle\Internal\Launcher\Environment;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\LoopTurn;
use Spindle\Internal\Preload;
use Spindle\Internal\UnlinkedFile;
use Spindle\LauncherException;

/** Passes the commands of all runs to launchers or a carrier. Decides on outcomes, retries and moved commands. */
final class CommandDispatcher
{
    /** Seconds before a command is tried again after processes or descriptors were exhausted. */
    private const EXHAUSTED_PAUSE_SECONDS = 0.05;

    /** Nanoseconds after which such commands fail, if no command runs that could free processes or descriptors. */
    private const EXHAUSTED_TIMEOUT_NANOSECONDS = 1_000_000_000;

    /** A command fails when more than this number of launchers died while they ran it. */
    private const MAX_LAUNCHER_DEATHS = 3;

    /** @var array<int, self> dispatchers with pending commands; suspended fibers may hold the only other reference */
    private static array $busy = [];

    public readonly CaptureStore $store;

    private readonly CommandBackend $backend;

    /** The same object as $backend, unless a carrier runs the commands. Then this one starts no launcher. */
    private readonly Launchers $launchers;

    private readonly RetryDelays $retryDelays;
    private readonly StepLog $log;

    /** Null when commands may start at any time. */
    private readonly ?StartDelay $startDelay;

    /**
     * @var array<int, PendingCommand> ended commands whose output callbacks and streams have not received completely,
     *                                 by id
     */
    private array $draining = [];

    /** @var array<int, true> ids of commands whose owners have not received an outcome */
    private array $open = [];

    /**
     * @var \WeakMap<PendingCommandOwner, array<array-key, string>> owners, with the environment of their commands
     */
    private \WeakMap $owners;

    /** @var array<array-key, string> environment of this process when the last lane was opened */
    private array $environment = [];

    private int $id = 0;
    private int $lane = 0;

    /** Results so far, failures among them, and retries. */
    private int $finished = 0;
    private int $failed = 0;
    private int $retried = 0;

    /** Time since which no launcher can start a command and none runs, in nanoseconds of the monotonic clock. */
    private int|float|null $exhaustedSince = null;

    public function __construct(
        private int $concurrency,
        public readonly RetryPolicy $retry,
        public readonly CommandPoolOptions $options,
    ) {
        Preload::classes(
            IsolatedCall::class,
            CannotWaitException::class,
            Fibers::class,
            LoopTurn::class,
            SpoolException::class,
            LauncherException::class,
            CommandFailedException::class,
            CaptureStream::class,
            SharedFile::class,
            ResultFactory::class,
            RunSummary::class,
            Execution::class,
            Run::class,
            InputFeeder::class,
            Sink::class,
            CommandRequest::class,
            ShellLine::class,
            PendingCommand::class,
        );
        $this->owners = new \WeakMap();
        $this->store = new CaptureStore($options->temporaryDirectory);
        // The callbacks hold only weak references, so that a pool without any other reference is destroyed.
        $weak = \WeakReference::create($this);
        $this->log = new StepLog($options->logger);
        $this->launchers = new Launchers(
            $options,
            $this->log,
            UnlinkedFile::prefix($this->store->directory),
            static function (
                Launcher $launcher,
                int $type,
                int $job,
                string $bytes,
                int $at,
                int $length,
            ) use ($weak): void {
                $weak->get()?->receive($launcher, $type, $job, $bytes, $at, $length);
            },
            static function (Launcher $launcher, string $how) use ($weak): void {
                $weak->get()?->launcherDied($launcher, $how);
            },
            static function (Launcher $launcher) use ($weak): void {
                $weak->get()?->forked($launcher);
            },
        );
        $this->backend = $options->on === null ? $this->launchers : new CarrierBackend(
            $options->on,
            static function (PendingCommand $pending, CommandResult $result) use ($weak): void {
                $weak->get()?->finish($pending, $result);
            },
            static function (PendingCommand $pending, \Throwable $reason) use ($weak): void {
                $weak->get()?->lost($pending, $reason);
            },
        );
        $this->retryDelays = new RetryDelays(static function (PendingCommand $pending) use ($weak): void {
            $weak->get()?->retry($pending);
        });
        $this->startDelay = $options->delay <= 0.0 ? null : new StartDelay(
            $options->delay,
            static fn(): bool => $weak->get()?->hasSlot() === true,
            static function (PendingCommand $pending) use ($weak): void {
                $weak->get()?->startDelayed($pending);
            },
        );
    }

    /**
     * Opens a lane for one run. Launchers take from lanes in turn. The run's commands get the current environment.
     *
     * @throws LauncherException when a launcher can't be started
     */
    public function open(PendingCommandOwner $owner): int
    {
        $environment = Environment::variables();
        if ($environment !== $this->environment) {
            $this->environment = $environment; // an unchanged array stays the same one, which compares fast
        }
        $this->owners[$owner] = $this->environment;
        $this->backend->prepare($this->concurrency);

        return ++$this->lane;
    }

    public function concurrency(): int
    {
        return $this->concurrency;
    }

    /** @return list<mixed> keys of the running commands that belong to runs, in the order of submission */
    public function running(): array
    {
        $belongsToRun = static fn(PendingCommand $pending): bool => $pending->owner instanceof Run;
        $running = array_filter($this->backend->running(), $belongsToRun);
        ksort($running);

        return array_values(array_map(static fn(PendingCommand $pending): mixed => $pending->key, $running));
    }

    /** @return array<string, int> */
    public function statistics(): array
    {
        $running = \count($this->backend->running());

        return [
            'in_use' => $running,
            'max' => $this->concurrency,
            'waiting' => \count($this->backend->commands()) - $running + \count($this->delayedCommands()),
            'finished_total' => $this->finished,
            'failed_total' => $this->failed,
            'retried_total' => $this->retried,
        ];
    }

    /** Takes a command. It is sent by {@see flush()}, or earlier. */
    public function submit(int $lane, mixed $key, Command $command, PendingCommandOwner $owner): PendingCommand
    {
        $id = $this->id = $this->id === 0xFFFFFFFF ? 1 : $this->id + 1;
        $pending = new PendingCommand($id, $lane, $key, $command, $owner, $this->store, $this->owners[$owner]);
        $this->start($pending);
        $this->open[$id] = true;
        self::$busy[spl_object_id($this)] = $this;

        return $pending;
    }

    /** Bytes that {@see flush()} has not sent, or that launchers have not received. */
    public function unsentBytes(): int
    {
        return $this->backend->unsentBytes();
    }

    public function flush(): void
    {
        $this->backend->flush();
    }

    /**
     * Ends the commands or takes them from the queue. Owners get cancelled results. Undelivered output is dropped.
     *
     * @param array<int, PendingCommand> $commands
     */
    public function cancel(array $commands): void
    {
        // The last ones first, so that waiting commands do not start in the slots of those that end.
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
        $this->flush();
    }

    public function drain(): void
    {
        foreach ($this->owners as $owner => $_) {
            $owner->drain();
        }
    }

    /** Takes the command back, or makes a running attempt the last one. {@see flush()} sends the request. */
    public function withdraw(PendingCommand $pending): void
    {
        $pending->final = true;
        if (!$this->cancelDelayed($pending)) {
            $this->backend->withdraw($pending);
        }
    }

    /** @throws LauncherException when the launcher's descriptor limit is too low */
    public function resize(int $concurrency): void
    {
        $this->backend->resize($concurrency, $this->concurrency);
        $this->concurrency = $concurrency;
        $this->startDelay?->schedule();
    }

    /**
     * Returns how many commands the launchers have descriptors for; waits for the launchers to start.
     *
     * @throws LauncherException
     */
    public function capacity(): int
    {
        return $this->backend->capacity($this->concurrency);
    }

    public function cancelAll(): void
    {
        $this->cancel($this->allCommands());
    }

    /** Ends all commands and the launchers, and notifies the owners of the commands. */
    public function close(): void
    {
        $commands = $this->allCommands();
        $this->retryDelays->clear();
        $this->startDelay?->clear();
        $this->draining = [];
        $this->backend->close();
        $this->failAll($commands, LauncherException::closed(...));
    }

    /** Suspends until the carrier has ended the commands that {@see close()} cancelled. */
    public function awaitEnd(): void
    {
        $this->backend->awaitEnd();
    }

    /** @return bool whether the command was waiting here; it is cancelled then */
    private function cancelDelayed(PendingCommand $pending): bool
    {
        if (!$this->retryDelays->remove($pending) && $this->startDelay?->remove($pending) !== true) {
            return false;
        }
        $pending->cancelled = true;
        $before = $pending->attempts === 0 ? 'it was started' : 'its next attempt';
        $this->settle($pending, ResultFactory::cancelled($pending, "cancelled before {$before}"));

        return true;
    }

    /** @return array<int, PendingCommand> all commands without an outcome, by id */
    private function allCommands(): array
    {
        return $this->backend->commands() + $this->delayedCommands() + $this->draining;
    }

    /** @return array<int, PendingCommand> commands that wait here for their first or next attempt, by id */
    private function delayedCommands(): array
    {
        return $this->retryDelays->commands() + ($this->startDelay?->commands() ?? []);
    }

    private function hasSlot(): bool
    {
        return \count($this->backend->commands()) < $this->concurrency;
    }

    /** @throws LauncherException when a launcher that is missing can't be started */
    private function start(PendingCommand $pending): void
    {
        $this->startDelay === null
            ? $this->backend->assign($pending, $this->concurrency)
            : $this->startDelay->add($pending);
    }

    /** Starts a command that was waiting here. If no launcher can take it, its owner gets the reason. */
    private function startDelayed(PendingCommand $pending): void
    {
        try {
            $this->backend->assign($pending, $this->concurrency);
            $this->flush();
        } catch (LauncherException|\ValueError $why) {
            $this->notifyLost($pending, $why);
        }
    }

    private function receive(Launcher $launcher, int $type, int $job, string $bytes, int $at, int $length): void
    {
        if ($type === LauncherProtocol::READY) {
            $this->launchers->ready($launcher, substr($bytes, $at, $length));

            return;
        }
        if ($type === LauncherProtocol::FAILED) {
            $this->launcherFailed($launcher, LauncherException::failed(substr($bytes, $at, $length)));

            return;
        }
        if ($type === LauncherProtocol::REFUSED) {
            $this->launcherFailed($launcher, $this->launchers->tooManyException($this->concurrency));

            return;
        }
        $pending = $launcher->commands[$job] ?? null;
        if ($pending === null) {
            return;
        }
        try {
            match ($type) {
                LauncherProtocol::EXITED => $this->exited($pending, $bytes, $at, $length),
                LauncherProtocol::STDOUT, LauncherProtocol::STDERR => $pending->write(
                    $type,
                    substr($bytes, $at, $length),
                ),
                LauncherProtocol::NOT_STARTED => $this->notStarted($pending, $bytes, $at, $length),
                LauncherProtocol::STARTED => $this->launchers->started($pending),
                LauncherProtocol::INPUT_TAKEN => $pending->feeder?->acknowledged(substr($bytes, $at, $length)),
                default => null,
            };
        } catch (SpoolException $failed) {
            $pending->fail($failed);
        }
    }

    private function launcherFailed(Launcher $launcher, LauncherException $why): void
    {
        $commands = $launcher->commands;
        $this->launchers->remove($launcher, $why);
        $launcher->close();
        $this->failAll($commands, static fn(): LauncherException => $why);
    }

    private function exited(PendingCommand $pending, string $bytes, int $at, int $length): void
    {
        $this->exhaustedSince = null;
        $this->finish($pending, ResultFactory::ofExit($pending, $bytes, $at, $length));
    }

    /** Handles the end of a command. The result waits until callbacks have received all output. */
    private function finish(PendingCommand $pending, CommandResult $result): void
    {
        $pending->feeder?->stop();
        $this->backend->release($pending);
        $this->startDelay?->schedule();
        if ($pending->sinks === []) {
            $this->retryOrSettle($pending, $result);

            return;
        }
        $this->draining[$pending->id] = $pending;
        $pending->whenDrained(function () use ($pending, $result): void {
            if (!isset($this->draining[$pending->id])) {
                return; // the pool was closed
            }
            unset($this->draining[$pending->id]);
            $this->retryOrSettle(
                $pending,
                $pending->error === null || $pending->error === $result->error
                    ? $result
                    : $result->withError($pending->error),
            );
        });
    }

    private function retryOrSettle(PendingCommand $pending, CommandResult $result): void
    {
        $thrown = $pending->thrown;
        if ($thrown !== null) {
            $this->notifyLost($pending, $thrown);
        } elseif (self::mayRepeat($pending) && $this->retry->shouldRetry($result)) {
            ++$this->retried;
            $delay = $this->retry->delayAfter($pending->attempts);
            $this->retryDelays->add($pending, $delay);
            $this->log->write('Retry in {delay} s: {result}', ['delay' => $delay, 'result' => $result]);
        } else {
            $this->settle($pending, $result);
        }
    }

    private static function mayRepeat(PendingCommand $pending): bool
    {
        return !$pending->cancelled && !$pending->final && $pending->isRepeatable();
    }

    private function settle(PendingCommand $pending, CommandResult $result): void
    {
        ++$this->finished;
        $this->failed += (int) !$result->succeeded();
        $this->store->share($pending->stdout, $pending->stderr);
        $this->outcomeDelivered($pending);
        $pending->owner->finished($pending, $result);
        $this->log->write('Ended: {result}', ['result' => $result]);
    }

    private function lost(PendingCommand $pending, \Throwable $reason): void
    {
        $this->backend->release($pending);
        $this->notifyLost($pending, $reason);
    }

    private function notifyLost(PendingCommand $pending, \Throwable $reason): void
    {
        $this->startDelay?->schedule();
        $this->outcomeDelivered($pending);
        $pending->owner->lost($pending, $reason);
    }

    private function outcomeDelivered(PendingCommand $pending): void
    {
        unset($this->open[$pending->id]);
        if ($this->open === []) {
            unset(self::$busy[spl_object_id($this)]);
        }
    }

    private function notStarted(PendingCommand $pending, string $bytes, int $at, int $length): void
    {
        if ($pending->moving && !$pending->cancelled && !$pending->final && \ord($bytes[$at + 1]) === 0) {
            try {
                $this->launchers->move($pending, $this->concurrency);
                $this->flush();
            } catch (LauncherException $why) {
                $this->notifyLost($pending, $why);
            }

            return;
        }
        if (
            \ord($bytes[$at]) === LauncherProtocol::EXHAUSTED && self::mayRepeat($pending)
        ) {
            $this->launchers->takeBackExhausted($pending);
            $this->startDelay?->schedule();
            // A command of another launcher or another process on this machine may free what is missing.
            if (
                !$this->launchers->areExhausted()
                || hrtime(true) - ($this->exhaustedSince ??= hrtime(true)) < self::EXHAUSTED_TIMEOUT_NANOSECONDS
            ) {
                $this->retryDelays->add($pending, self::EXHAUSTED_PAUSE_SECONDS);

                return;
            }
        }
        $this->finish($pending, ResultFactory::ofNoStart($pending, $bytes, $at, $length));
    }

    private function retry(PendingCommand $pending): void
    {
        $pending->resetOutput();
        $this->startDelay === null ? $this->startDelayed($pending) : $this->startDelay->add($pending);
    }

    private function launcherDied(Launcher $launcher, string $how): void
    {
        $commands = $launcher->commands;
        $launcher->commands = [];
        $isReplaceable = $this->launchers->died($launcher, $how);
        $mayHaveStarted = $launcher->isReady && !$this->options->redispatch;
        if (!$isReplaceable || $mayHaveStarted) {
            $this->failAll(
                $commands,
                static fn(array $keys): LauncherException => LauncherException::died($how, $keys),
            );

            return;
        }
        if ($commands === []) {
            return;
        }
        try {
            $this->launchers->start($this->concurrency);
        } catch (LauncherException $why) {
            $this->failAll(
                $commands,
                static fn(array $keys): LauncherException
                    => LauncherException::died("{$how}; {$why->getMessage()}", $keys),
            );

            return;
        }
        $suspects = array_filter(
            $commands,
            static fn(PendingCommand $pending): bool
                => $pending->started && ++$pending->deaths > self::MAX_LAUNCHER_DEATHS,
        );
        $this->failAll(
            $suspects,
            static fn(array $keys): LauncherException
                => LauncherException::died("{$how}, as did earlier launchers with one of these commands", $keys),
        );
        foreach (array_diff_key($commands, $suspects) as $pending) {
            $this->redispatch($pending, $how);
        }
        $this->flush();
    }

    /** Called in a fork of this process: the outcomes go to the process that submitted the commands. */
    private function forked(Launcher $launcher): void
    {
        $commands = $launcher->commands;
        $launcher->commands = [];
        $this->failAll($commands, LauncherException::forked(...));
    }

    private function redispatch(PendingCommand $pending, string $how): void
    {
        $pending->launcher = null;
        $pending->moving = $pending->started = false;
        $pending->cancelled = $pending->cancelled || $pending->final;
        if ($pending->cancelled || $pending->error !== null || $pending->thrown !== null) {
            $this->finish($pending, ResultFactory::cancelled($pending, 'cancelled'));
        } elseif ($pending->isRepeatable()) {
            $pending->resetOutput();
            try {
                $this->start($pending);
            } catch (LauncherException $why) {
                $this->failAll([$pending], static fn(): LauncherException => $why);
            }
        } else {
            $this->failAll(
                [$pending],
                static fn(array $keys): LauncherException
                    => LauncherException::died("{$how}; the command's input can't be read twice", $keys),
            );
        }
    }

    /**
     * @param array<int, PendingCommand>                       $commands
     * @param \Closure(list<mixed>): LauncherException $reason  makes the exception from one owner's keys
     */
    private function failAll(array $commands, \Closure $reason): void
    {
        $keys = [];
        foreach ($commands as $pending) {
            $keys[spl_object_id($pending->owner)][] = $pending->key;
        }
        $exceptions = array_map($reason, $keys);
        foreach ($commands as $pending) {
            $pending->launcher = null;
            $pending->feeder?->stop();
            $this->notifyLost($pending, $exceptions[spl_object_id($pending->owner)]);
        }
    }
}
