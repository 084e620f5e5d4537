<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Command\Command;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\LauncherException;
use Spindle\Command\Output;
use Spindle\Command\RetryPolicy;
use Spindle\Command\SpoolException;

/**
 * What all runs of a pool share: its launchers, the commands that they have, and what follows from each frame they send.
 *
 * A launcher waits while a process that it starts becomes the program; several wait side by side
 * (docs/decisions/0005-several-launchers.md). Each may run its share of the commands. When one has slots to spare and
 * another has commands that wait, these are asked back and move.
 */
final class Dispatcher
{
    /** Input up to this size travels with the command, in bytes. */
    private const INLINE = 1 << 16;

    /** When each launcher has died so often, with no command finished in between, none is started again. */
    private const DEATHS = 3;

    /** When processes or descriptors are exhausted, a command waits so long, in seconds, and so often if it is alone. */
    private const REFUSED_FOR = 0.05;
    private const REFUSALS = 20;

    public readonly CaptureStore $store;

    private readonly Launchers $launchers;

    /** @var array<int, string> watchers of the pauses before retries, by the ticket's id */
    private array $retries = [];

    /** @var array<int, Ticket> those that pause before a retry */
    private array $paused = [];

    /** @var \WeakMap<TicketOwner, true> that may have commands here */
    private \WeakMap $owners;

    private int $id = 0;
    private int $lane = 0;
    private int $deaths = 0;

    /** @var list<Suspension<mixed>> */
    private array $waitingForReady = [];
    private readonly LoggerInterface $logger;

    public function __construct(
        private int $concurrency,
        public readonly RetryPolicy $retry,
        public readonly CommandPoolOptions $options,
    ) {
        // What tells of exhausted descriptors can't be loaded when they are.
        array_map(class_exists(...), [SpoolException::class, LauncherException::class, CaptureStream::class, Outcome::class, EventLoop\UncaughtThrowable::class]);
        $this->owners = new \WeakMap();
        $this->store = new CaptureStore($options->temporaryDirectory);
        $this->logger = $options->logger ?? new NullLogger();
        // The callbacks hold no strong reference: a pool that nobody holds is to end.
        $weak = \WeakReference::create($this);
        $this->launchers = new Launchers(
            $options,
            $this->store->prefix,
            static function (Launcher $launcher, int $type, int $job, string $bytes, int $at, int $length) use ($weak): void {
                $weak->get()?->receive($launcher, $type, $job, $bytes, $at, $length);
            },
            static function (Launcher $launcher, string $how) use ($weak): void {
                $weak->get()?->launcherDied($launcher, $how);
            },
        );
    }

    public function concurrency(): int
    {
        return $this->concurrency;
    }

    /** @throws LauncherException when the launcher has not the descriptors for so many */
    public function resize(int $concurrency): void
    {
        if ($this->launchers->areStarted()) {
            $this->capacity();
        }
        $this->launchers->resize($concurrency);
        $this->concurrency = $concurrency;
    }

    /**
     * Opens a lane for one run: a launcher starts waiting commands of different lanes in turn.
     *
     * @throws LauncherException when a launcher can't be started
     */
    public function open(TicketOwner $owner): int
    {
        $this->owners[$owner] = true;
        $this->launchers->refresh($this->concurrency);

        return ++$this->lane;
    }

    /** Takes charge of a command. It is on its way when {@see flush()} is called, or earlier. */
    public function submit(int $lane, mixed $key, Command $command, TicketOwner $owner): Ticket
    {
        $id = $this->id = $this->id === 0xFFFFFFFF ? 1 : $this->id + 1;
        $ticket = new Ticket($id, $lane, $key, $command, $owner, $this->store);
        $this->dispatch($ticket);

        return $ticket;
    }

    public function flush(): void
    {
        $this->launchers->flush();
    }

    /** Bytes that {@see submit()} has gathered and {@see flush()} has not sent, or the launchers not taken. */
    public function unsent(): int
    {
        return $this->launchers->unsent();
    }

    /**
     * Ends the commands' process trees, or takes them from the queue; their owners get cancelled results.
     *
     * @param array<int, Ticket> $tickets
     */
    public function cancel(array $tickets): void
    {
        // The last ones first: those that wait are not to start in the slots of those that end.
        foreach (array_reverse($tickets) as $ticket) {
            $this->cancelOne($ticket);
        }
        $this->flush();
    }

    private function cancelOne(Ticket $ticket): void
    {
        if ($ticket->cancelled) {
            return;
        }
        $ticket->cancelled = true;
        if ($this->takeFromPause($ticket)) {
            return;
        }
        $ticket->feeder?->stop();
        $ticket->launcher?->gather(Protocol::frame(Protocol::CANCEL, $ticket->id));
    }

    /** Takes the command back unless it runs; the attempt that runs is its last. Sent by {@see flush()}. */
    public function withdraw(Ticket $ticket): void
    {
        $ticket->final = true;
        if (isset($this->paused[$ticket->id])) {
            $ticket->cancelled = true;
            $this->takeFromPause($ticket);
        } else {
            $ticket->launcher?->gather(Protocol::frame(Protocol::WITHDRAW, $ticket->id));
        }
    }

    public function drain(): void
    {
        foreach ($this->owners as $owner => $_) {
            $owner->drain();
        }
    }

    /**
     * How many commands the launchers have descriptors for; waits for them to start.
     *
     * @throws LauncherException
     */
    public function capacity(): int
    {
        $this->launchers->start($this->concurrency);
        if ($this->launchers->capacity() === null) {
            $this->waitingForReady[] = $suspension = EventLoop::getSuspension();
            $this->launchers->awaitReady();
            $suspension->suspend();
        }

        return (int) $this->launchers->capacity();
    }

    public function cancelAll(): void
    {
        $this->cancel($this->launchers->tickets() + $this->paused);
    }

    /** Ends the launchers and with them all commands; their owners are told. */
    public function close(): void
    {
        $tickets = $this->launchers->tickets() + $this->paused;
        foreach ($this->retries as $watcher) {
            EventLoop::cancel($watcher);
        }
        $this->paused = $this->retries = [];
        $this->launchers->close();
        $this->lose($tickets, LauncherException::closed(...));
    }

    private function takeFromPause(Ticket $ticket): bool
    {
        if (!isset($this->paused[$ticket->id])) {
            return false;
        }
        EventLoop::cancel($this->retries[$ticket->id]);
        unset($this->retries[$ticket->id], $this->paused[$ticket->id]);
        $this->settle($ticket, Outcome::cancelled($ticket, 'cancelled before its next attempt'));

        return true;
    }

    private function dispatch(Ticket $ticket): void
    {
        $launcher = $this->launchers->freest($this->concurrency);
        $launcher->add($ticket);
        $command = $ticket->command;
        $flags = $this->target($ticket, $command->stdout, Protocol::STDOUT)
            | $this->target($ticket, $command->stderr, Protocol::STDERR)
            | $this->source($ticket);
        $launcher->gather(Request::run($ticket, $flags));
    }

    /** @return int the flags that say so to the launcher */
    private function target(Ticket $ticket, mixed $target, int $type): int
    {
        $isError = $type === Protocol::STDERR;
        if ($target === Output::Capture) {
            return 0;
        }
        if ($target === Output::Inherit) {
            return $isError ? Protocol::INHERIT_STDERR : Protocol::INHERIT_STDOUT;
        }
        if ($target === Output::Discard) {
            return $isError ? Protocol::DISCARD_STDERR : Protocol::DISCARD_STDOUT;
        }
        /** @var \Closure(string): void|resource $target */
        $ticket->sinks[$type] ??= new Sink(
            $target,
            function (int $bytes) use ($ticket): void {
                $ticket->launcher?->send(Protocol::frame(Protocol::OUTPUT_TAKEN, $ticket->id, pack('V', $bytes)));
            },
            fn(\Throwable $thrown) => $this->fail($ticket, $thrown),
        );

        return $isError ? Protocol::STREAM_STDERR : Protocol::STREAM_STDOUT;
    }

    /** @return int the flags that say so to the launcher */
    private function source(Ticket $ticket): int
    {
        /** @var string|resource|iterable<mixed, string>|null $input */
        $input = $ticket->command->input;
        if ($input === null) {
            return 0;
        }
        if (\is_string($input) && \strlen($input) <= self::INLINE) {
            return Protocol::INPUT_INLINE;
        }
        $ticket->feeder = new Feeder(
            $input,
            fn(string $bytes) => $ticket->launcher?->send(Protocol::frame(Protocol::INPUT, $ticket->id, $bytes)),
            fn() => $ticket->launcher?->send(Protocol::frame(Protocol::INPUT_END, $ticket->id)),
            fn(\Throwable $thrown) => $this->fail($ticket, $thrown),
        );

        return Protocol::INPUT_FOLLOWS;
    }

    /** Something on this side of the command failed: it is ended, and its outcome is that failure. */
    private function fail(Ticket $ticket, \Throwable $thrown): void
    {
        if ($thrown instanceof SpoolException) {
            $ticket->error ??= $thrown->getMessage();
        } else {
            $ticket->thrown ??= $thrown;
        }
        $ticket->launcher?->send(Protocol::frame(Protocol::CANCEL, $ticket->id));
    }

    private function receive(Launcher $launcher, int $type, int $job, string $bytes, int $at, int $length): void
    {
        if ($type === Protocol::READY) {
            /** @var array{pid: int, capacity: int} $ready */
            $ready = unpack('Vpid/Vcapacity', $bytes, $at);
            $means = substr($bytes, $at + 8, $length - 8);
            $this->launchers->ready($ready['capacity'], $means);
            $this->wakeWaiting(static fn(Suspension $suspension) => $suspension->resume());
            $this->logger->debug('The launcher {pid} is ready and uses {means}', ['pid' => $ready['pid'], 'means' => $means]);

            return;
        }
        if ($type === Protocol::FAILED) {
            $this->launcherFailed($launcher, LauncherException::failed(substr($bytes, $at, $length)));

            return;
        }
        if ($type === Protocol::REFUSED) {
            $this->launcherFailed($launcher, $this->launchers->tooMany($this->concurrency));

            return;
        }
        $ticket = $launcher->tickets[$job] ?? null;
        if ($ticket === null) {
            return;
        }
        try {
            match ($type) {
                Protocol::EXITED => $this->finish($ticket, Outcome::ofExit($ticket, $bytes, $at, $length)),
                Protocol::STDOUT, Protocol::STDERR => $this->output($ticket, $type, substr($bytes, $at, $length)),
                Protocol::NOT_STARTED => $this->notStarted($ticket, $bytes, $at, $length),
                Protocol::INPUT_TAKEN => $ticket->feeder?->taken(self::number($bytes, $at)),
                default => null,
            };
        } catch (SpoolException $failed) {
            $this->fail($ticket, $failed);
        }
    }

    private static function number(string $bytes, int $at): int
    {
        /** @var array{1: int} $number */
        $number = unpack('V', $bytes, $at);

        return $number[1];
    }

    private function output(Ticket $ticket, int $type, string $bytes): void
    {
        if (isset($ticket->sinks[$type])) {
            $ticket->sinks[$type]->write($bytes);
        } elseif ($ticket->error === null) {
            ($type === Protocol::STDOUT ? $ticket->stdout : $ticket->stderr)->append($bytes);
        }
    }

    private function notStarted(Ticket $ticket, string $bytes, int $at, int $length): void
    {
        if ($ticket->moving && !$ticket->cancelled && !$ticket->final && \ord($bytes[$at + 1]) === 0) {
            $ticket->launcher?->remove($ticket);
            $this->dispatch($ticket);
            $this->flush();

            return;
        }
        if (\ord($bytes[$at]) === Protocol::EXHAUSTED && !$ticket->cancelled && !$ticket->final && $ticket->feeder === null) {
            $ticket->launcher?->remove($ticket);
            // A command of another launcher, or anything else on this machine, may free what is missing.
            if ($this->launchers->tickets() !== [] || ++$ticket->refusals <= self::REFUSALS) {
                $this->later($ticket, self::REFUSED_FOR);

                return;
            }
        }
        $this->finish($ticket, Outcome::ofNoStart($ticket, $bytes, $at, $length));
    }

    /** The command is over for the launcher; its result waits until callbacks have had all of its output. */
    private function finish(Ticket $ticket, CommandResult $result): void
    {
        $ticket->feeder?->stop();
        $this->deaths = 0;
        $launcher = $ticket->launcher;
        $launcher?->remove($ticket);
        if ($launcher !== null && $launcher->excess() < 0) {
            $this->launchers->balance();
        }
        $left = \count($ticket->sinks);
        if ($left === 0) {
            $this->conclude($ticket, $result);

            return;
        }
        foreach ($ticket->sinks as $sink) {
            $sink->whenDrained(function () use ($ticket, $result, &$left): void {
                if (--$left === 0) {
                    $this->conclude($ticket, $ticket->error === null || $ticket->error === $result->error ? $result : $result->withError($ticket->error));
                }
            });
        }
    }

    private function conclude(Ticket $ticket, CommandResult $result): void
    {
        if ($ticket->thrown !== null) {
            $ticket->owner->lost($ticket, $ticket->thrown);

            return;
        }
        if (!$ticket->cancelled && !$ticket->final && $ticket->isRepeatable() && $this->retry->wants($result)) {
            $this->retryLater($ticket, $result);

            return;
        }
        $this->settle($ticket, $result);
    }

    private function settle(Ticket $ticket, CommandResult $result): void
    {
        if ($this->options->logger !== null) {
            $this->logger->debug('Ended: {result}', ['result' => $result->describe()]);
        }
        $ticket->owner->finished($ticket, $result);
    }

    private function retryLater(Ticket $ticket, CommandResult $result): void
    {
        $delay = $this->retry->delayAfter($ticket->attempts);
        $this->logger->debug('Tried again in {delay} s: {result}', ['delay' => $delay, 'result' => $result->describe()]);
        $this->later($ticket, $delay);
    }

    private function later(Ticket $ticket, float $delay): void
    {
        $this->paused[$ticket->id] = $ticket;
        $this->retries[$ticket->id] = EventLoop::delay($delay, function () use ($ticket): void {
            unset($this->paused[$ticket->id], $this->retries[$ticket->id]);
            $ticket->begin();
            try {
                $this->dispatch($ticket);
                $this->flush();
            } catch (LauncherException $why) {
                $ticket->owner->lost($ticket, $why);
            }
        });
    }

    /** @param \Closure(Suspension<mixed>): void $wake of those that wait to hear what the launchers can do */
    private function wakeWaiting(\Closure $wake): void
    {
        $waiting = $this->waitingForReady;
        $this->waitingForReady = [];
        array_map($wake, $waiting);
    }

    private function launcherFailed(Launcher $launcher, LauncherException $why): void
    {
        $tickets = $launcher->tickets;
        $this->launchers->remove($launcher);
        $launcher->close();
        $this->wakeWaiting(static fn(Suspension $suspension) => $suspension->throw($why));
        $this->lose($tickets, static fn(): LauncherException => $why);
    }

    private function launcherDied(Launcher $launcher, string $how): void
    {
        $tickets = $launcher->tickets;
        $launcher->tickets = [];
        $this->launchers->remove($launcher);
        $this->logger->debug('A launcher died: {how}', ['how' => $how]);
        $this->wakeWaiting(static fn(Suspension $suspension) => $suspension->throw(LauncherException::died($how, [])));
        if (!$this->options->redispatch || ++$this->deaths > self::DEATHS * $this->launchers->count()) {
            $this->lose($tickets, static fn(array $keys): LauncherException => LauncherException::died($how, $keys));

            return;
        }
        if ($tickets === []) {
            return;
        }
        try {
            $this->launchers->start($this->concurrency);
        } catch (LauncherException $why) {
            $this->lose($tickets, static fn(array $keys): LauncherException => LauncherException::died("{$how}; {$why->getMessage()}", $keys));

            return;
        }
        foreach ($tickets as $ticket) {
            $this->redispatch($ticket, $how);
        }
        $this->flush();
    }

    private function redispatch(Ticket $ticket, string $how): void
    {
        $ticket->launcher = null;
        $ticket->moving = false;
        $ticket->cancelled = $ticket->cancelled || $ticket->final;
        if ($ticket->cancelled || $ticket->error !== null || $ticket->thrown !== null) {
            $this->finish($ticket, Outcome::cancelled($ticket, 'cancelled'));
        } elseif ($ticket->isRepeatable()) {
            $ticket->begin();
            $this->dispatch($ticket);
        } else {
            $this->lose([$ticket], static fn(array $keys): LauncherException => LauncherException::died("{$how}; the command's input can't be read twice", $keys));
        }
    }

    /**
     * @param array<int, Ticket>                        $tickets
     * @param \Closure(list<mixed>): LauncherException $reason  made from the keys of one owner's tickets
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
            $ticket->owner->lost($ticket, $exceptions[spl_object_id($ticket->owner)]);
        }
    }
}
