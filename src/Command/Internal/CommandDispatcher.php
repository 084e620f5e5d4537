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
    private const STUCK_TIMEOUT_NANOSECONDS = 1_000_000_000;

    /** A command fails when more than this number of launchers died while they ran it. */
    private const MAX_LAUNCHER_DEATHS = 3;

    /** @var array<int, self> dispatchers with pending commands; suspended fibers may hold the only other reference */
    private static array $busy = [];

    public readonly CaptureStore $store;

    private readonly CommandBackend $place;

    /** The same object as $place, unless a carrier runs the commands. Then this one starts no launcher. */
    private readonly Launchers $launchers;

    private readonly RetryDelays $pauses;
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
    private int|float|null $stuckSince = null;

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
                $weak->get()?->launcherLeft($launcher);
            },
        );
        $this->place = $options->on === null ? $this->launchers : new CarrierBackend(
            $options->on,
            static function (PendingCommand $ticket, CommandResult $result) use ($weak): void {
                $weak->get()?->finish($ticket, $result);
            },
            static function (PendingCommand $ticket, \Throwable $reason) use ($weak): void {
                $weak->get()?->lost($ticket, $reason);
            },
        );
        $this->pauses = new RetryDelays(static function (PendingCommand $ticket) use ($weak): void {
            $weak->get()?->tryAgain($ticket);
        });
        $this->startDelay = $options->delay <= 0.0 ? null : new StartDelay(
            $options->delay,
            static fn(): bool => $weak->get()?->hasSlot() === true,
            static function (PendingCommand $ticket) use ($weak): void {
                $weak->get()?->startLater($ticket);
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
        $this->place->refresh($this->concurrency);

        return ++$this->lane;
    }

    public function concurrency(): int
    {
        return $this->concurrency;
    }

    /** @return list<mixed> keys of the running commands that belong to runs, in the order of submission */
    public function running(): array
    {
        $ofRuns = static fn(PendingCommand $ticket): bool => $ticket->owner instanceof Run;
        $running = array_filter($this->place->running(), $ofRuns);
        ksort($running);

        return array_values(array_map(static fn(PendingCommand $ticket): mixed => $ticket->key, $running));
    }

    /** @return array<string, int> */
    public function figures(): array
    {
        $running = \count($this->place->running());

        return [
            'in_use' => $running,
            'max' => $this->concurrency,
            'waiting' => \count($this->place->tickets()) - $running + \count($this->held()),
            'finished_total' => $this->finished,
            'failed_total' => $this->failed,
            'retried_total' => $this->retried,
        ];
    }

    /** Takes a command. It is sent by {@see flush()}, or earlier. */
    public function submit(int $lane, mixed $key, Command $command, PendingCommandOwner $owner): PendingCommand
    {
        $id = $this->id = $this->id === 0xFFFFFFFF ? 1 : $this->id + 1;
        $ticket = new PendingCommand($id, $lane, $key, $command, $owner, $this->store, $this->owners[$owner]);
        $this->start($ticket);
        $this->open[$id] = true;
        self::$busy[spl_object_id($this)] = $this;

        return $ticket;
    }

    /** Bytes that {@see flush()} has not sent, or that launchers have not received. */
    public function unsent(): int
    {
        return $this->place->unsent();
    }

    public function flush(): void
    {
        $this->place->flush();
    }

    /**
     * Ends the commands or takes them from the queue. Owners get cancelled results. Undelivered output is dropped.
     *
     * @param array<int, PendingCommand> $tickets
     */
    public function cancel(array $tickets): void
    {
        // The last ones first, so that waiting commands do not start in the slots of those that end.
        foreach (array_reverse($tickets) as $ticket) {
            if ($ticket->cancelled) {
                continue;
            }
            $ticket->cancelled = true;
            if (!$this->endPause($ticket)) {
                $ticket->feeder?->stop();
                $this->place->cancel($ticket);
                $ticket->discardOutput();
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
    public function withdraw(PendingCommand $ticket): void
    {
        $ticket->final = true;
        if (!$this->endPause($ticket)) {
            $this->place->withdraw($ticket);
        }
    }

    /** @throws LauncherException when the launcher's descriptor limit is too low */
    public function resize(int $concurrency): void
    {
        $this->place->resize($concurrency, $this->concurrency);
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
        return $this->place->capacity($this->concurrency);
    }

    public function cancelAll(): void
    {
        $this->cancel($this->tickets());
    }

    /** Ends all commands and the launchers, and notifies the owners of the commands. */
    public function close(): void
    {
        $tickets = $this->tickets();
        $this->pauses->clear();
        $this->startDelay?->clear();
        $this->draining = [];
        $this->place->close();
        $this->lose($tickets, LauncherException::closed(...));
    }

    /** Suspends until the carrier has ended the commands that {@see close()} cancelled. */
    public function awaitEnd(): void
    {
        $this->place->awaitEnd();
    }

    /** @return bool whether the command was waiting here; it is cancelled then */
    private function endPause(PendingCommand $ticket): bool
    {
        if (!$this->pauses->remove($ticket) && $this->startDelay?->remove($ticket) !== true) {
            return false;
        }
        $ticket->cancelled = true;
        $before = $ticket->attempts === 0 ? 'it was started' : 'its next attempt';
        $this->settle($ticket, ResultFactory::cancelled($ticket, "cancelled before {$before}"));

        return true;
    }

    /** @return array<int, PendingCommand> all commands without an outcome, by id */
    private function tickets(): array
    {
        return $this->place->tickets() + $this->held() + $this->draining;
    }

    /** @return array<int, PendingCommand> commands that wait here for their first or next attempt, by id */
    private function held(): array
    {
        return $this->pauses->tickets() + ($this->startDelay?->tickets() ?? []);
    }

    private function hasSlot(): bool
    {
        return \count($this->place->tickets()) < $this->concurrency;
    }

    /** @throws LauncherException when a launcher that is missing can't be started */
    private function start(PendingCommand $ticket): void
    {
        $this->startDelay === null
            ? $this->place->assign($ticket, $this->concurrency)
            : $this->startDelay->add($ticket);
    }

    /** Starts a command that was waiting here. If no launcher can take it, its owner gets the reason. */
    private function startLater(PendingCommand $ticket): void
    {
        try {
            $this->place->assign($ticket, $this->concurrency);
            $this->flush();
        } catch (LauncherException|\ValueError $why) {
            $this->tellLost($ticket, $why);
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
            $this->launcherFailed($launcher, $this->launchers->tooMany($this->concurrency));

            return;
        }
        $ticket = $launcher->tickets[$job] ?? null;
        if ($ticket === null) {
            return;
        }
        try {
            match ($type) {
                LauncherProtocol::EXITED => $this->exited($ticket, $bytes, $at, $length),
                LauncherProtocol::STDOUT, LauncherProtocol::STDERR => $ticket->write(
                    $type,
                    substr($bytes, $at, $length),
                ),
                LauncherProtocol::NOT_STARTED => $this->notStarted($ticket, $bytes, $at, $length),
                LauncherProtocol::STARTED => $this->launchers->started($ticket),
                LauncherProtocol::INPUT_TAKEN => $ticket->feeder?->taken(substr($bytes, $at, $length)),
                default => null,
            };
        } catch (SpoolException $failed) {
            $ticket->fail($failed);
        }
    }

    private function launcherFailed(Launcher $launcher, LauncherException $why): void
    {
        $tickets = $launcher->tickets;
        $this->launchers->remove($launcher, $why);
        $launcher->close();
        $this->lose($tickets, static fn(): LauncherException => $why);
    }

    private function exited(PendingCommand $ticket, string $bytes, int $at, int $length): void
    {
        $this->stuckSince = null;
        $this->finish($ticket, ResultFactory::ofExit($ticket, $bytes, $at, $length));
    }

    /** Handles the end of a command. The result waits until callbacks have received all output. */
    private function finish(PendingCommand $ticket, CommandResult $result): void
    {
        $ticket->feeder?->stop();
        $this->place->release($ticket);
        $this->startDelay?->schedule();
        if ($ticket->sinks === []) {
            $this->conclude($ticket, $result);

            return;
        }
        $this->draining[$ticket->id] = $ticket;
        $ticket->whenDrained(function () use ($ticket, $result): void {
            if (!isset($this->draining[$ticket->id])) {
                return; // the pool was closed
            }
            unset($this->draining[$ticket->id]);
            $this->conclude(
                $ticket,
                $ticket->error === null || $ticket->error === $result->error
                    ? $result
                    : $result->withError($ticket->error),
            );
        });
    }

    private function conclude(PendingCommand $ticket, CommandResult $result): void
    {
        $thrown = $ticket->thrown;
        if ($thrown !== null) {
            $this->tellLost($ticket, $thrown);
        } elseif (!$ticket->cancelled && !$ticket->final && $ticket->isRepeatable() && $this->retry->shouldRetry($result)) {
            ++$this->retried;
            $delay = $this->retry->delayAfter($ticket->attempts);
            $this->pauses->add($ticket, $delay);
            $this->log->write('Tried again in {delay} s: {result}', ['delay' => $delay, 'result' => $result]);
        } else {
            $this->settle($ticket, $result);
        }
    }

    private function settle(PendingCommand $ticket, CommandResult $result): void
    {
        ++$this->finished;
        $this->failed += (int) !$result->succeeded();
        $this->store->share($ticket->stdout, $ticket->stderr);
        $this->told($ticket);
        $ticket->owner->finished($ticket, $result);
        $this->log->write('Ended: {result}', ['result' => $result]);
    }

    private function lost(PendingCommand $ticket, \Throwable $reason): void
    {
        $this->place->release($ticket);
        $this->tellLost($ticket, $reason);
    }

    private function tellLost(PendingCommand $ticket, \Throwable $reason): void
    {
        $this->startDelay?->schedule();
        $this->told($ticket);
        $ticket->owner->lost($ticket, $reason);
    }

    private function told(PendingCommand $ticket): void
    {
        unset($this->open[$ticket->id]);
        if ($this->open === []) {
            unset(self::$busy[spl_object_id($this)]);
        }
    }

    private function notStarted(PendingCommand $ticket, string $bytes, int $at, int $length): void
    {
        if ($ticket->moving && !$ticket->cancelled && !$ticket->final && \ord($bytes[$at + 1]) === 0) {
            try {
                $this->launchers->move($ticket, $this->concurrency);
                $this->flush();
            } catch (LauncherException $why) {
                $this->tellLost($ticket, $why);
            }

            return;
        }
        if (
            \ord($bytes[$at]) === LauncherProtocol::EXHAUSTED
            && !$ticket->cancelled
            && !$ticket->final
            && $ticket->isRepeatable()
        ) {
            $this->launchers->refused($ticket);
            $this->startDelay?->schedule();
            // A command of another launcher or another process on this machine may free what is missing.
            if (
                !$this->launchers->areStuck()
                || hrtime(true) - ($this->stuckSince ??= hrtime(true)) < self::STUCK_TIMEOUT_NANOSECONDS
            ) {
                $this->pauses->add($ticket, self::EXHAUSTED_PAUSE_SECONDS);

                return;
            }
        }
        $this->finish($ticket, ResultFactory::ofNoStart($ticket, $bytes, $at, $length));
    }

    private function tryAgain(PendingCommand $ticket): void
    {
        $ticket->begin();
        $this->startDelay === null ? $this->startLater($ticket) : $this->startDelay->add($ticket);
    }

    private function launcherDied(Launcher $launcher, string $how): void
    {
        $tickets = $launcher->tickets;
        $launcher->tickets = [];
        $isReplaceable = $this->launchers->died($launcher, $how);
        $mayHaveStarted = $launcher->isReady && !$this->options->redispatch;
        if (!$isReplaceable || $mayHaveStarted) {
            $this->lose($tickets, static fn(array $keys): LauncherException => LauncherException::died($how, $keys));

            return;
        }
        if ($tickets === []) {
            return;
        }
        try {
            $this->launchers->start($this->concurrency);
        } catch (LauncherException $why) {
            $this->lose(
                $tickets,
                static fn(array $keys): LauncherException
                    => LauncherException::died("{$how}; {$why->getMessage()}", $keys),
            );

            return;
        }
        $suspects = array_filter(
            $tickets,
            static fn(PendingCommand $ticket): bool
                => $ticket->started && ++$ticket->deaths > self::MAX_LAUNCHER_DEATHS,
        );
        $this->lose(
            $suspects,
            static fn(array $keys): LauncherException
                => LauncherException::died("{$how}, as did launchers before it that had one of these", $keys),
        );
        foreach (array_diff_key($tickets, $suspects) as $ticket) {
            $this->redispatch($ticket, $how);
        }
        $this->flush();
    }

    /** Called in a fork of this process: the outcomes go to the process that submitted the commands. */
    private function launcherLeft(Launcher $launcher): void
    {
        $tickets = $launcher->tickets;
        $launcher->tickets = [];
        $this->lose($tickets, LauncherException::forked(...));
    }

    private function redispatch(PendingCommand $ticket, string $how): void
    {
        $ticket->launcher = null;
        $ticket->moving = $ticket->started = false;
        $ticket->cancelled = $ticket->cancelled || $ticket->final;
        if ($ticket->cancelled || $ticket->error !== null || $ticket->thrown !== null) {
            $this->finish($ticket, ResultFactory::cancelled($ticket, 'cancelled'));
        } elseif ($ticket->isRepeatable()) {
            $ticket->begin();
            try {
                $this->start($ticket);
            } catch (LauncherException $why) {
                $this->lose([$ticket], static fn(): LauncherException => $why);
            }
        } else {
            $this->lose(
                [$ticket],
                static fn(array $keys): LauncherException
                    => LauncherException::died("{$how}; the command's input can't be read twice", $keys),
            );
        }
    }

    /**
     * @param array<int, PendingCommand>                       $tickets
     * @param \Closure(list<mixed>): LauncherException $reason  makes the exception from one owner's keys
     */
    private function lose(array $tickets, \Closure $reason): void
    {
        $keys = [];
        foreach ($tickets as $ticket) {
            $keys[spl_object_id($ticket->owner)][] = $ticket->key;
        }
        $exceptions = array_map($reason, $keys);
        foreach ($tickets as $ticket) {
            $ticket->launcher = null;
            $ticket->feeder?->stop();
            $this->tellLost($ticket, $exceptions[spl_object_id($ticket->owner)]);
        }
    }
}
