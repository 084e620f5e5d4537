<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\StreamException;
use Spindle\Internal\Clock;
use Spindle\Internal\Launcher\HelperCode;
use Spindle\Internal\Launcher\LauncherEvents;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\OwnLoop;
use Spindle\LauncherException;

/**
 * Gives commands to launchers, and handles the frames of launchers. Decides what happens to a command after a failed
 * start or the death of its launcher.
 */
final class LauncherBackend implements CommandBackend
{
    /** Seconds for which starts are retried while no launcher has free descriptors or processes. */
    private const EXHAUSTED_TIMEOUT_SECONDS = 1.0;

    /** With `rerunAfterCrash`, a command fails when more than this number of launchers have died while they ran it. */
    private const MAX_LAUNCHER_DEATHS = 3;

    private readonly Launchers $launchers;

    /** @var \WeakReference<AttemptEvents> */
    private readonly \WeakReference $events;

    /** Event loop in which the pool was first used. The launchers work only in this loop. Null before the first use. */
    private ?OwnLoop $loop = null;

    /** Time of {@see Clock} at which all launchers were first exhausted. An exit of a command sets the time to null. */
    private ?float $exhaustedSince = null;

    /** Time of {@see Clock} at which a launcher last reported that it is exhausted. */
    private float $exhaustedAt = -\INF;

    public function __construct(
        private readonly CommandPoolOptions $options,
        private int $concurrency,
        ?StepLog $log,
        string $temporaryFilePrefix,
        AttemptEvents $events,
    ) {
        HelperCode::record(HelperCode::LAUNCHER);
        $this->launchers = new Launchers($options, $log, $temporaryFilePrefix, $this);
        $this->events = \WeakReference::create($events);
    }

    public function prepare(): void
    {
        $this->refuseOtherLoop();
        $this->launchers->prepare($this->concurrency);
        $this->loop ??= new OwnLoop();
    }

    public function assign(PendingCommand $pending): void
    {
        $credentials = $this->launchers->start($this->concurrency);
        if (($pending->credentials ??= $credentials) !== $credentials) {
            throw LauncherException::otherCredentials([$pending->key]);
        }
        self::handOver($pending, $this->launchers->leastBusy());
    }

    public function cancel(PendingCommand $pending): void
    {
        $pending->launcher?->process->queue(LauncherProtocol::frame(LauncherProtocol::CANCEL, $pending->id));
    }

    public function withdraw(PendingCommand $pending): void
    {
        $pending->launcher?->process->queue(LauncherProtocol::frame(LauncherProtocol::WITHDRAW, $pending->id));
    }

    public function unsentBytes(): int
    {
        return $this->launchers->unsentBytes();
    }

    public function flush(): void
    {
        $this->launchers->flush();
    }

    public function commands(): array
    {
        $commands = [];
        foreach ($this->launchers->all() as $launcher) {
            $commands += $launcher->commands;
        }

        return $commands;
    }

    public function running(): array
    {
        $running = [];
        foreach ($this->launchers->all() as $launcher) {
            $running += $launcher->running();
        }

        return $running;
    }

    public function setPaused(bool $isPaused): void
    {
        $this->launchers->setPaused($isPaused);
    }

    public function resize(int $concurrency): void
    {
        $this->launchers->resize($concurrency, $this->concurrency);
        $this->concurrency = $concurrency;
    }

    public function maxConcurrency(): int
    {
        $this->refuseOtherLoop();
        $maximum = $this->launchers->maxConcurrency($this->concurrency);
        $this->loop ??= new OwnLoop();

        return $maximum;
    }

    public function close(): void
    {
        $this->launchers->close();
    }

    /** Does nothing, because {@see close()} returns only after the launchers have exited. */
    public function awaitEnd(): void {}

    /** Handles a frame of a launcher, see {@see LauncherEvents::onFrame()}. */
    public function onFrame(Launcher $launcher, int $type, int $job, string $bytes, int $at, int $length): void
    {
        $pending = $launcher->commands[$job] ?? null;
        if ($pending === null) {
            $this->handleLauncherFrame($launcher, $type, $job, substr($bytes, $at, $length));

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
                LauncherProtocol::STARTED => $this->started($pending, $length === 0),
                LauncherProtocol::WAITING => $pending->onStillWaiting(),
                LauncherProtocol::INPUT_ACCEPTED => $pending->feeder?->onAcknowledgement(substr($bytes, $at, $length)),
                default => null,
            };
        } catch (StreamException $failed) {
            $pending->fail($failed);
        }
    }

    /** Fails the commands of a dead launcher, or runs them again. `$how` is the cause, such as an exit code. */
    public function onDeath(Launcher $launcher, string $how): void
    {
        $commands = $launcher->commands;
        $launcher->commands = [];
        $isReplaceable = $this->launchers->died($launcher, $how);
        foreach ($commands as $pending) {
            $pending->mayHaveStarted = $pending->mayHaveStarted || $launcher->isReady;
        }
        $mustFail = $launcher->isReady && !$this->options->rerunAfterCrash; // the commands may have started
        if (!$isReplaceable || $mustFail) {
            $this->failDead($commands, $how);
            $commands = [];
        }
        if (!$isReplaceable || ($commands === [] && !$this->haveWaitingCommands())) {
            return;
        }
        try {
            $this->launchers->start($this->concurrency);
        } catch (LauncherException $why) {
            $this->failDead($commands, "{$how}; {$why->getMessage()}");

            return;
        }
        // Commands that were running when several launchers died may be the cause of the deaths.
        $suspects = array_filter(
            $commands,
            static fn(PendingCommand $pending): bool
                => $pending->started && ++$pending->deaths > self::MAX_LAUNCHER_DEATHS,
        );
        $others = self::MAX_LAUNCHER_DEATHS . ' other launchers have also died while they ran these commands';
        $this->failDead($suspects, "{$how}; {$others}");
        foreach (array_diff_key($commands, $suspects) as $pending) {
            $this->rerun($pending, $how);
        }
    }

    /** Fails all commands in a fork of this process, because only the original process gets the outcomes. */
    public function onFork(Launcher $launcher): void
    {
        $commands = $launcher->commands;
        $launcher->commands = [];
        $this->events->get()?->onLost($commands, LauncherException::forked(...));
    }

    public function onDestroyed(): void
    {
        $this->events->get()?->kill(LauncherException::destroyed(...));
    }

    /** Removes a launcher that will run none of its commands, and fails these commands. */
    public function launcherFailed(Launcher $launcher, LauncherException $why): void
    {
        $commands = $launcher->commands;
        $launcher->commands = []; // later frames of the launcher must not give these commands a second outcome
        $this->launchers->remove($launcher, $why);
        $launcher->process->close();
        $this->events->get()?->onLost($commands, static fn(): LauncherException => $why);
    }

    private static function handOver(PendingCommand $pending, Launcher $launcher): void
    {
        $launcher->add($pending);
        $pending->prepareStreams();
        $launcher->process->useEnvironment($pending->environment);
        $launcher->process->queue(CommandRequest::runFrame($pending));
    }

    private function handleLauncherFrame(Launcher $launcher, int $type, int $job, string $payload): void
    {
        match ($type) {
            LauncherProtocol::READY => $this->launchers->ready($launcher, $payload),
            LauncherProtocol::STARTED => $job === 0 ? $launcher->onConfigured() : null,
            LauncherProtocol::FAILED => $this->launcherFailed($launcher, LauncherException::failed($payload)),
            LauncherProtocol::REFUSED => $this->launcherFailed(
                $launcher,
                $this->launchers->tooManyException($this->concurrency),
            ),
            default => null,
        };
    }

    /** @param bool $isRunning false if the start may still fail */
    private function started(PendingCommand $pending, bool $isRunning): void
    {
        $this->launchers->commandStarted($pending);
        $isRunning ? $this->events->get()?->onStarted($pending) : null;
    }

    private function exited(PendingCommand $pending, string $bytes, int $at, int $length): void
    {
        $this->exhaustedSince = null;
        $pending->mayHaveStarted = true; // a LauncherException during a retry must say that the command may have run
        // A command that has ended before its launcher got the request to end it counts as cancelled too.
        $pending->cancelled = $pending->cancelled || $pending->cancelNext !== null;
        $result = ResultFactory::ofExit($pending, $bytes, $at, $length);
        if ($pending->cancelled) {
            $pending->discardOutput();
        }
        $this->finish($pending, $result);
    }

    private function notStarted(PendingCommand $pending, string $bytes, int $at, int $length): void
    {
        [$reason, $exitCode] = [\ord($bytes[$at]), \ord($bytes[$at + 1])];
        $isWithdrawn = $reason === 0 && $exitCode === 0; // not $isMoving, which a frame STARTED may have cleared
        $pending->cancelled = $pending->cancelled || (!$isWithdrawn && $pending->cancelNext !== null);
        if ($isWithdrawn && !$pending->mustEnd()) {
            try {
                $pending->onStillWaiting();
                $this->move($pending);
                $this->flush();
            } catch (LauncherException $why) {
                $this->events->get()?->onLost([$pending->id => $pending], static fn(): LauncherException => $why);
            }

            return;
        }
        if ($reason === LauncherProtocol::EXHAUSTED && $pending->mayRetry()) {
            $launcher = $pending->launcher;
            $launcher?->remove($pending);
            if ($launcher !== null) {
                $launcher->exhausted = true;
                $this->launchers->closeIfUnneeded($launcher);
            }
            if ($this->isRetryUseful()) {
                $this->events->get()?->onExhausted($pending);

                return;
            }
        }
        $this->finish($pending, ResultFactory::ofNoStart($pending, $bytes, $at, $length));
    }

    /**
     * Records that a launcher lacks descriptors or processes, and returns whether to retry. Commands of other launchers
     * may free them when they end. Without such commands, only other programs can, so retries stop after a timeout.
     */
    private function isRetryUseful(): bool
    {
        $now = Clock::now();
        if ($now - $this->exhaustedAt > self::EXHAUSTED_TIMEOUT_SECONDS + $this->options->delay) {
            $this->exhaustedSince = null; // the last shortage is over: in this time, a retry would have reported it
        }
        $this->exhaustedAt = $now;

        return !$this->launchers->areExhausted()
            || $now - ($this->exhaustedSince ??= $now) < self::EXHAUSTED_TIMEOUT_SECONDS;
    }

    /**
     * Assigns a withdrawn command to a launcher with free slots. If the credentials of this process have changed, the
     * command goes back to its retired launcher, because only that launcher has the credentials of the command.
     *
     * @throws LauncherException see {@see assign()}
     */
    private function move(PendingCommand $pending): void
    {
        $launcher = $pending->launcher;
        $launcher?->remove($pending);
        $this->launchers->start($this->concurrency);
        if ($launcher !== null && $this->launchers->isRetired($launcher)) {
            self::handOver($pending, $launcher);
        } else {
            $this->assign($pending);
        }
    }

    private function haveWaitingCommands(): bool
    {
        return array_filter($this->launchers->all(), static fn(Launcher $one): bool => $one->excess() > 0) !== [];
    }

    /** Runs a command of a dead launcher again, or ends the command as cancelled or with a {@see LauncherException}. */
    private function rerun(PendingCommand $pending, string $how): void
    {
        $pending->launcher = null;
        $pending->isMoving = $pending->started = false;
        $pending->cancelled = $pending->cancelled || $pending->isLastAttempt || $pending->cancelNext !== null;
        if ($pending->mustEnd()) {
            $this->finish($pending, ResultFactory::withoutExit($pending, 'cancelled'));
        } elseif ($pending->canRepeatInput()) {
            $this->events->get()?->onRetryDue($pending);
        } else {
            $this->failDead([$pending->id => $pending], "{$how}; the command's input can't be read twice");
        }
    }

    private function finish(PendingCommand $pending, CommandResult $result): void
    {
        $launcher = $pending->launcher;
        $launcher?->remove($pending);
        $this->launchers->commandEnded($launcher);
        $this->events->get()?->onEnded($pending, $result);
    }

    /** @param array<int, PendingCommand> $commands commands of a dead launcher */
    private function failDead(array $commands, string $how): void
    {
        $mayHaveStarted = \in_array(true, array_column($commands, 'mayHaveStarted'), true);
        $this->events->get()?->onLost(
            $commands,
            static fn(array $keys): LauncherException => $mayHaveStarted
                ? LauncherException::died($how, $keys)
                : LauncherException::neverReady($how, $keys),
        );
    }

    private function refuseOtherLoop(): void
    {
        if ($this->loop?->isCurrent() === false) {
            throw LauncherException::inOtherLoop();
        }
    }
}
