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
 * What all runs of a pool share: its launcher, the commands that it has, and what follows from each frame it sends.
 */
final class Dispatcher
{
    /** Input up to this size travels with the command, in bytes. */
    private const INLINE = 1 << 16;

    /** A launcher that dies so often in a row, with no command finished in between, is not started again. */
    private const DEATHS = 3;

    public readonly CaptureStore $store;
    private ?Launcher $launcher = null;

    /** @var array<int, Ticket> handed to the launcher and without an outcome, by id */
    private array $tickets = [];

    /** @var array<int, string> watchers of the pauses before retries, by the ticket's id */
    private array $retries = [];

    /** @var array<int, Ticket> those that pause before a retry */
    private array $paused = [];

    /** @var array<string, string|null> what the launcher has for an environment */
    private array $environment = [];

    /** @var \WeakMap<TicketOwner, true> that may have commands here */
    private \WeakMap $owners;

    private int $id = 0;
    private int $lane = 0;
    private int $deaths = 0;
    private int $capacity = \PHP_INT_MAX;
    private string $means = '';

    /** @var Suspension<mixed>|null */
    private ?Suspension $waitingForReady = null;
    private string $unsent = '';
    private readonly LoggerInterface $logger;

    public function __construct(
        private int $concurrency,
        public readonly RetryPolicy $retry,
        public readonly CommandPoolOptions $options,
    ) {
        $this->owners = new \WeakMap();
        $this->store = new CaptureStore($options->temporaryDirectory);
        $this->logger = $options->logger ?? new NullLogger();
    }

    public function concurrency(): int
    {
        return $this->concurrency;
    }

    /** @throws LauncherException when the launcher has not the descriptors for so many */
    public function resize(int $concurrency): void
    {
        if ($concurrency > $this->capacity) {
            throw LauncherException::tooManyAtOnce($concurrency, $this->capacity, $this->means);
        }
        $this->concurrency = $concurrency;
        $this->launcher?->send($this->configuration());
    }

    /**
     * Opens a lane for one run: the launcher starts waiting commands of different lanes in turn.
     *
     * @throws LauncherException when the launcher can't be started
     */
    public function open(TicketOwner $owner): int
    {
        $this->owners[$owner] = true;
        if ($this->tickets === []) {
            $this->launcher?->read(); // one that has died meanwhile is noticed, and replaced
        }
        if ($this->launcher === null) {
            $this->start();
        }
        $environment = self::ownEnvironment();
        if ($environment !== $this->environment) {
            $this->environment = $environment;
            $this->launcher?->send($this->environmentFrame());
        }

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
        if ($this->unsent !== '') {
            $frames = $this->unsent;
            $this->unsent = '';
            $this->launcher?->send($frames);
        }
    }

    /** Bytes that {@see submit()} has gathered and {@see flush()} has not sent, or the launcher not taken. */
    public function unsent(): int
    {
        return \strlen($this->unsent) + ($this->launcher?->unsent() ?? 0);
    }

    /** Ends the command's process tree, or takes it from the queue; its owner gets a cancelled result. */
    public function cancel(Ticket $ticket): void
    {
        if ($ticket->cancelled) {
            return;
        }
        $ticket->cancelled = true;
        if ($this->takeFromPause($ticket)) {
            return;
        }
        $ticket->feeder?->stop();
        $this->unsent .= Protocol::frame(Protocol::CANCEL, $ticket->id);
        $this->flush();
    }

    /** Takes the command back unless it runs; the attempt that runs is its last. Sent by {@see flush()}. */
    public function withdraw(Ticket $ticket): void
    {
        $ticket->final = true;
        if (isset($this->paused[$ticket->id])) {
            $ticket->cancelled = true;
            $this->takeFromPause($ticket);
        } elseif (isset($this->tickets[$ticket->id])) {
            $this->unsent .= Protocol::frame(Protocol::WITHDRAW, $ticket->id);
        }
    }

    public function drain(): void
    {
        foreach ($this->owners as $owner => $_) {
            $owner->drain();
        }
    }

    /**
     * How many commands the launcher has descriptors for; waits for it to start.
     *
     * @throws LauncherException
     */
    public function capacity(): int
    {
        if ($this->launcher === null) {
            $this->start();
        }
        if ($this->means === '') {
            $this->launcher?->expectFrames(true);
            $this->waitingForReady = EventLoop::getSuspension();
            try {
                $this->waitingForReady->suspend();
            } finally {
                $this->launcher?->expectFrames($this->tickets !== []);
            }
        }

        return $this->capacity;
    }

    public function cancelAll(): void
    {
        foreach ($this->tickets + $this->paused as $ticket) {
            $this->cancel($ticket);
        }
    }

    /** Ends the launcher and with it all commands; their owners are told. */
    public function close(): void
    {
        $launcher = $this->launcher;
        $this->launcher = null;
        $launcher?->close();
        $this->loseAll(LauncherException::closed(...));
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

    private function start(): void
    {
        $weak = \WeakReference::create($this);
        $this->launcher = new Launcher(
            $this->options,
            static function (int $type, int $job, string $bytes, int $at, int $length) use ($weak): void {
                $weak->get()?->receive($type, $job, $bytes, $at, $length);
            },
            static function (string $how) use ($weak): void {
                $weak->get()?->launcherDied($how);
            },
        );
        $this->environment = self::ownEnvironment();
        $this->launcher->send($this->configuration() . $this->environmentFrame());
        $this->logger->debug('The launcher was started');
    }

    /**
     * What the system or putenv() set. Under FPM and its kin, a list has the request's variables as well, which must not
     * reach commands: each is asked for by its name.
     *
     * @return array<string, string>
     */
    private static function ownEnvironment(): array
    {
        $environment = getenv();
        if (\PHP_SAPI === 'cli') {
            return $environment;
        }
        foreach ($environment as $name => $_) {
            $value = getenv((string) $name, true);
            if ($value === false) {
                unset($environment[$name]);
            } else {
                $environment[$name] = $value;
            }
        }

        return $environment;
    }

    private function configuration(): string
    {
        return Protocol::frame(Protocol::CONFIGURE, 0, pack('Ve', $this->concurrency, $this->options->grace));
    }

    private function environmentFrame(): string
    {
        $variables = [];
        foreach ($this->environment as $name => $value) {
            $variables[] = "{$name}={$value}";
        }

        return Protocol::frame(Protocol::ENVIRONMENT, 0, implode("\0", $variables));
    }

    private function dispatch(Ticket $ticket): void
    {
        if ($this->launcher === null) {
            $this->start();
        }
        if ($this->tickets === []) {
            $this->launcher?->expectFrames(true);
        }
        $this->tickets[$ticket->id] = $ticket;
        $command = $ticket->command;
        $flags = $this->target($ticket, $command->stdout, Protocol::STDOUT)
            | $this->target($ticket, $command->stderr, Protocol::STDERR)
            | $this->source($ticket);
        $this->unsent .= Request::run($ticket, $flags);
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
                $this->launcher?->send(Protocol::frame(Protocol::OUTPUT_TAKEN, $ticket->id, pack('V', $bytes)));
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
            fn(string $bytes) => $this->launcher?->send(Protocol::frame(Protocol::INPUT, $ticket->id, $bytes)),
            fn() => $this->launcher?->send(Protocol::frame(Protocol::INPUT_END, $ticket->id)),
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
        if (isset($this->tickets[$ticket->id])) {
            $this->unsent .= Protocol::frame(Protocol::CANCEL, $ticket->id);
            $this->flush();
        }
    }

    private function receive(int $type, int $job, string $bytes, int $at, int $length): void
    {
        if ($type === Protocol::READY) {
            /** @var array{pid: int, capacity: int} $ready */
            $ready = unpack('Vpid/Vcapacity', $bytes, $at);
            $this->capacity = $ready['capacity'];
            $this->means = substr($bytes, $at + 8, $length - 8);
            $this->waitingForReady?->resume();
            $this->waitingForReady = null;
            $this->logger->debug('The launcher {pid} is ready and uses {means}', ['pid' => $ready['pid'], 'means' => $this->means]);

            return;
        }
        if ($type === Protocol::FAILED) {
            $this->launcherFailed(LauncherException::failed(substr($bytes, $at, $length)));

            return;
        }
        if ($type === Protocol::REFUSED) {
            /** @var array{wanted: int, capacity: int} $refused */
            $refused = unpack('Vwanted/Vcapacity', $bytes, $at);
            $this->launcherFailed(LauncherException::tooManyAtOnce($refused['wanted'], $refused['capacity'], substr($bytes, $at + 8, $length - 8)));

            return;
        }
        $ticket = $this->tickets[$job] ?? null;
        if ($ticket === null) {
            return;
        }
        try {
            match ($type) {
                Protocol::EXITED => $this->finish($ticket, Outcome::ofExit($ticket, $bytes, $at, $length)),
                Protocol::STDOUT, Protocol::STDERR => $this->output($ticket, $type, substr($bytes, $at, $length)),
                Protocol::NOT_STARTED => $this->finish($ticket, Outcome::ofNoStart($ticket, $bytes, $at, $length)),
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

    /** The command is over for the launcher; its result waits until callbacks have had all of its output. */
    private function finish(Ticket $ticket, CommandResult $result): void
    {
        $ticket->feeder?->stop();
        $this->deaths = 0;
        $this->forget($ticket);
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

    private function forget(Ticket $ticket): void
    {
        unset($this->tickets[$ticket->id]);
        if ($this->tickets === []) {
            $this->launcher?->expectFrames(false);
        }
    }

    private function launcherFailed(LauncherException $why): void
    {
        $launcher = $this->launcher;
        $this->launcher = null;
        $launcher?->close();
        $this->loseAll(static fn(): LauncherException => $why);
    }

    private function launcherDied(string $how): void
    {
        $this->launcher = null;
        $this->unsent = '';
        $this->logger->debug('The launcher died: {how}', ['how' => $how]);
        if (!$this->options->redispatch || ++$this->deaths > self::DEATHS) {
            $this->loseAll(static fn(array $keys): LauncherException => LauncherException::died($how, $keys));

            return;
        }
        $this->waitingForReady?->throw(LauncherException::died($how, []));
        $this->waitingForReady = null;
        $tickets = $this->tickets;
        if ($tickets !== []) {
            try {
                $this->start();
            } catch (LauncherException $why) {
                $this->loseAll(static fn(array $keys): LauncherException => LauncherException::died("{$how}; {$why->getMessage()}", $keys));

                return;
            }
        }
        $this->tickets = [];
        foreach ($tickets as $ticket) {
            $ticket->cancelled = $ticket->cancelled || $ticket->final;
            if ($ticket->cancelled || $ticket->error !== null || $ticket->thrown !== null) {
                $this->finish($ticket, Outcome::cancelled($ticket, 'cancelled'));
            } elseif ($ticket->isRepeatable()) {
                $ticket->begin();
                $this->dispatch($ticket);
            } else {
                $ticket->feeder?->stop();
                $ticket->owner->lost($ticket, LauncherException::died("{$how}; the command's input can't be read twice", [$ticket->key]));
            }
        }
        $this->flush();
    }

    /** @param \Closure(list<mixed>): LauncherException $reason */
    private function loseAll(\Closure $reason): void
    {
        foreach ($this->retries as $watcher) {
            EventLoop::cancel($watcher);
        }
        $tickets = $this->tickets + $this->paused;
        $this->tickets = $this->paused = $this->retries = [];
        $this->unsent = '';
        $this->waitingForReady?->throw($reason([]));
        $this->waitingForReady = null;
        $keys = [];
        foreach ($tickets as $ticket) {
            $keys[spl_object_id($ticket->owner)][] = $ticket->key;
        }
        $exceptions = array_map($reason, $keys);
        foreach ($tickets as $ticket) {
            $ticket->feeder?->stop();
            $ticket->owner->lost($ticket, $exceptions[spl_object_id($ticket->owner)]);
        }
    }
}
