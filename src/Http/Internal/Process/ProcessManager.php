<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Psr\Log\LoggerInterface;
use Spindle\Http\AppException;
use Spindle\Http\Internal\Server\Listeners;
use Spindle\Http\Internal\Server\RepeatedWarnings;
use Spindle\Http\SupervisorOptions;
use Spindle\Internal\Backoff;
use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Internal\Terminal;

/**
 * The supervisor's main loop. It starts processes, replaces those that end or have old code, and ends them with itself.
 * The supervisor never loads the application and has no event loop. It sleeps until a signal, a message or a deadline.
 */
final class ProcessManager
{
    /** Nanoseconds of serving after which an end does not count as early. */
    private const EARLY_END_NANOSECONDS = 10_000_000_000;

    /** Number of unanswered pings after which a process is killed. */
    private const MAX_UNANSWERED_PINGS = 4;

    /** Nanoseconds for a process to report its position before it is killed. */
    private const REPORT_NANOSECONDS = 250_000_000;

    /** Nanoseconds from SIGTERM to a process until its replacement starts. The supervisor may get SIGTERM, too. */
    private const TERMINATION_NANOSECONDS = 100_000_000;

    /** Seconds from an ending process's own timeout until it is killed. */
    private const GRACE_SECONDS = 1.0;

    /** @var list<Slot> */
    private readonly array $slots;

    private readonly Children $children;
    private readonly Terminal $terminal;
    private readonly ProcessReplacement $succession;
    private readonly EndedProcessTotals $past;
    private readonly ProcessQueries $surveys;

    /** Pauses before a replacement: for a process that failed to start, and for one that ended early. */
    private readonly Backoff $backoff;
    private readonly Backoff $respite;

    /** Whether some processes have not served yet. */
    private bool $starting = true;

    private bool $stopping = false;

    private readonly RepeatedWarnings $warnings;

    /** The second stop signal, which kills all processes. */
    private int $killedBy = 0;

    /** When the next pings are sent, and when files are scanned next, by hrtime(). */
    private int $pingAt = 0;
    private int $lookAt = 0;

    /**
     * @param string         $app    the file that the processes load
     * @param list<ProcessRole>     $duties
     * @param string         $ready  logged when all processes serve
     * @param FileWatch|null $files  its changes cause a reload
     */
    public function __construct(
        private readonly string $app,
        array $duties,
        private readonly string $ready,
        private readonly SupervisorOptions $options,
        private readonly LoggerInterface $logger,
        private readonly ?FileWatch $files = null,
    ) {
        $this->slots = array_map(static fn(ProcessRole $duty): Slot => new Slot($duty), $duties);
        $this->children = new Children(
            $logger,
            $this->heard(...),
            array_merge(...array_map(static fn(ProcessRole $duty): array => $duty->sockets, $duties)),
        );
        $this->warnings = new RepeatedWarnings();
        $this->terminal = new Terminal();
        $this->succession = new ProcessReplacement($this->applicationSlots());
        $this->past = new EndedProcessTotals();
        $this->surveys = new ProcessQueries($this->past);
        $this->backoff = new Backoff(0.2, 2.0, 30.0, 0.2);
        $this->respite = new Backoff(0.1, 2.0, 1.0, 0.2);
    }

    /**
     * Runs until a signal stops it, and returns when no process is left.
     *
     * @return int the signal that killed all processes, or 0
     *
     * @throws AppException when a process fails to start at first; then none is left
     */
    public function run(): int
    {
        $signals = new SignalInbox();
        try {
            while (!$this->stopping || !$this->children->isEmpty()) {
                $this->keepTime((int) hrtime(true));
                $this->stopping ? $this->stopTheRest() : $this->startWhatIsDue((int) hrtime(true));
                $this->children->listen($signals, $this->nextDue());
                // before handling the ends of processes that got the same signal
                array_map($this->obey(...), $signals->take());
                array_map($this->ended(...), $this->children->reap());
            }
        } finally {
            $this->children->killAll();
            array_map(self::closeSockets(...), $this->slots);
            $signals->close();
        }

        return $this->killedBy;
    }

    private function obey(int $signal): void
    {
        if ($signal === \SIGHUP && !$this->stopping && $this->terminal->isGone()) {
            $this->logger->info('Hung up: the terminal is gone');
            $this->stop();
        } elseif ($signal === \SIGHUP) {
            $this->reload('');
        } elseif ($signal === \SIGUSR1 || $signal === \SIGUSR2) {
            $this->logger->warning(
                ($signal === \SIGUSR1 ? 'SIGUSR1' : 'SIGUSR2')
                    . ' was ignored: SIGHUP reloads the code, SIGTERM ends the server',
            );
        } elseif ($signal !== \SIGCHLD && $this->stopping) {
            $this->killedBy = $signal;
            $this->children->killAll();
        } elseif ($signal !== \SIGCHLD) {
            $this->stop();
        }
    }

    private function reload(string $what): void
    {
        if ($this->stopping) {
            return;
        }
        $this->logger->info(
            ($this->succession->isReloading() ? 'Reloading anew, in place of the reload under way' : 'Reloading')
                . $what,
        );
        $slot = $this->succession->reload();
        if ($slot?->successor !== null) {
            $this->end($slot->successor, Message::Stop);
            $slot->successor = null;
        }
    }

    private function stop(): void
    {
        $this->stopping = true;
        $this->logger->info('Stopping: what has come is answered');
        array_map(self::closeSockets(...), $this->applicationSlots());
        foreach ($this->children->thatRunTheApplication() as $child) {
            $this->end($child, Message::Stop);
        }
    }

    /** Ends processes that do not run the application, after those that do. */
    private function stopTheRest(): void
    {
        if ($this->children->thatRunTheApplication() !== []) {
            return;
        }
        array_map(self::closeSockets(...), $this->slots);
        foreach ($this->children as $child) {
            if (!$child->ending) {
                $this->end($child, Message::Stop);
            }
        }
    }

    private function end(Child $child, Message $how, string $payload = ''): void
    {
        $child->ending = true;
        if ($child->readyAt === null) {
            $this->children->kill($child, '');

            return;
        }
        $child->channel->send($how, 0, $payload);
        $timeout = $how === Message::Stop ? $child->stopTimeout : $child->leaveTimeout;
        $child->endUntil = min(
            $child->endUntil,
            (int) hrtime(true) + self::nanoseconds($timeout + self::GRACE_SECONDS),
        );
        Signals::send($child->pid, \SIGCONT); // a process that is stopped (SIGSTOP) would not even read the message
    }

    private static function closeSockets(Slot $slot): void
    {
        foreach ($slot->duty->sockets as $name => $socket) {
            if (\is_resource($socket)) {
                Listeners::remove($name);
                fclose($socket);
            }
        }
    }

    private function keepTime(int $now): void
    {
        foreach ($this->children as $child) {
            if ($child->startUntil <= $now) {
                $child->startUntil = \PHP_INT_MAX;
                $this->ask($child, "did not come up within {$this->options->startTimeout} s");
            }
            if ($child->endUntil <= $now) {
                $child->endUntil = \PHP_INT_MAX;
                $this->ask(
                    $child,
                    'was killed, as it had not ended in time after it was told to: a handler blocks its event loop, or the process was stopped',
                );
            }
            if ($child->replaceAt <= $now) {
                $child->replaceAt = \PHP_INT_MAX;
                $isCurrent = $child === $child->slot->current;
                $isCurrent && !$this->starting && !$this->stopping ? $this->vacate($child) : null;
            }
            if ($child->killAt !== null && $child->killAt <= $now) {
                $child->killAt = \PHP_INT_MAX;
                $this->children->kill($child, '');
            }
        }
        if ($this->pingAt <= $now) {
            foreach ($this->children as $child) {
                $this->ping($child);
            }
            $this->pingAt = $now + self::nanoseconds($this->options->stallTimeout / self::MAX_UNANSWERED_PINGS);
        }
        if ($this->lookAt <= $now && $this->files !== null) {
            $changes = $this->files->changes();
            if ($changes !== []) {
                $this->reload(': ' . implode(', ', $changes));
            }
            $this->lookAt = (int) hrtime(true) + FileWatch::INTERVAL;
        }
        $this->surveys->expire($now);
    }

    /** Sends a ping. Pings are counted, not seconds. So a pause of the supervisor makes no process look blocked. */
    private function ping(Child $child): void
    {
        if ($child->readyAt === null) {
            return;
        }
        if ($child->unanswered++ < self::MAX_UNANSWERED_PINGS) {
            $child->channel->send(Message::Ping);
        } else {
            $this->ask(
                $child,
                "was killed, as its event loop had not turned for {$this->options->stallTimeout} s: a handler blocks it, or never returns",
            );
        }
    }

    /**
     * Makes a process report its position and end. The signal comes only before a kill, since it disturbs a handler.
     *
     * @param string $why reason of the kill
     */
    private function ask(Child $child, string $why): void
    {
        if ($child->killAt === null) {
            $child->end = $child->end === '' ? $why : $child->end;
            $child->killAt = (int) hrtime(true) + self::REPORT_NANOSECONDS;
            Signals::send($child->pid, ServingProcess::END_AT_ONCE);
        }
    }

    private function startWhatIsDue(int $now): void
    {
        foreach ($this->slots as $slot) {
            if ($slot->current === null && $slot->successor === null && $slot->startAt <= $now) {
                $slot->current = $this->start($slot, $this->lost(...));
            }
            if ($this->starting && $this->slots[0]->current?->readyAt === null) {
                return; // one process is enough to find out what is wrong with the application
            }
        }
        $slot = $this->hasStarted() ? $this->succession->next() : null;
        if ($slot !== null) {
            $slot->successor = $this->start($slot, $this->notReplaced(...));
        }
    }

    /** @param \Closure(Slot, string): void $failed */
    private function start(Slot $slot, \Closure $failed): ?Child
    {
        try {
            $child = $this->children->fork($slot);
            $child->startUntil = (int) hrtime(true) + self::nanoseconds($this->options->startTimeout);

            return $child;
        } catch (ForkException $failure) {
            ++$slot->failures;
            $failed($slot, "{$slot->duty->name} can't be started: {$failure->getMessage()}");

            return null;
        }
    }

    private function hasStarted(): bool
    {
        foreach ($this->starting ? $this->slots : [] as $slot) {
            if ($slot->current?->readyAt === null) {
                return false;
            }
        }
        if ($this->starting) {
            $this->starting = false;
            $this->logger->info($this->ready);
        }

        return true;
    }

    /** Returns when something is due next, by hrtime(). */
    private function nextDue(): int
    {
        $due = min($this->pingAt, $this->surveys->nextDeadline(), $this->files === null ? \PHP_INT_MAX : $this->lookAt);
        foreach ($this->children as $child) {
            $killAt = $child->killAt ?? \PHP_INT_MAX;
            $due = min($due, $child->startUntil, $child->endUntil, $child->replaceAt, $killAt);
        }
        foreach ($this->slots as $slot) {
            $due = $slot->current === null && $slot->successor === null ? min($due, $slot->startAt) : $due;
        }

        return $due;
    }

    private function heard(Child $child, Message $message, int $number, string $payload): void
    {
        match ($message) {
            Message::Ready => $this->serves($child, $payload),
            Message::Failed => $child->failure = $payload,
            Message::Dying => $this->dies($child, $payload),
            Message::Terminated => $this->terminated($child),
            Message::Alive => $child->unanswered = 0,
            Message::Spent => $this->spent($child, $payload, $number === 1),
            Message::Survey => $this->surveys->begin($child, $number, $payload, $this->serving()),
            Message::Interim, Message::Answer => $this->surveys->answered(
                $child,
                $number,
                $payload,
                $message === Message::Interim,
            ),
            Message::Drained => $child->drained = true,
            Message::Counted => $child->counted = $payload,
            Message::Where => $child->place = $payload,
            default => throw new \ValueError("{$child} said {$message->name}"),
        };
    }

    /** @param string $timeouts payload of {@see Message::Ready} */
    private function serves(Child $child, string $timeouts): void
    {
        /** @var array{1: float, 2: float} $seconds */
        $seconds = unpack('e2', $timeouts);
        [1 => $child->stopTimeout, 2 => $child->leaveTimeout] = $seconds;
        if ($child->ending) {
            return; // the process was killed while it sent this message
        }
        $child->readyAt = (int) hrtime(true);
        $child->startUntil = \PHP_INT_MAX;
        $slot = $child->slot;
        if ($child !== $slot->successor) {
            return;
        }
        [$before, $slot->current, $slot->successor] = [$slot->current, $child, null];
        if ($before !== null) {
            $this->end($before, Message::Leave, pack('e', $this->files === null ? \INF : 0.0));
        }
        if ($this->succession->succeeded()) {
            $this->logger->info('Reloaded');
        }
    }

    /** Handles a process that ends by itself. It has as much time as after {@see Message::Stop}. */
    private function dies(Child $child, string $why): void
    {
        $child->end = $why;
        $child->endUntil = min(
            $child->endUntil,
            (int) hrtime(true) + self::nanoseconds($child->stopTimeout + self::GRACE_SECONDS),
        );
    }

    /** Schedules the replacement of a process that got SIGTERM and answers its last requests. */
    private function terminated(Child $child): void
    {
        $this->dies($child, 'was sent SIGTERM');
        $child->replaceAt = (int) hrtime(true) + self::TERMINATION_NANOSECONDS;
    }

    private function spent(Child $child, string $why, bool $tooSoon): void
    {
        if ($tooSoon && $this->warnings->begins('maxMemory')) {
            $this->logger->warning(
                "{$child} is to be replaced almost from its start, as {$why}: the limit of {$this->options->maxMemory} bytes is below what the application needs by itself",
            );
        }
        $child->spent = $why;
        $this->replace($child->slot);
    }

    /** Replaces a process, unless an earlier one of the slot is still ending. This bounds the number of processes. */
    private function replace(Slot $slot): void
    {
        $child = $slot->current;
        if ($child !== null && $child->spent !== '' && !$child->ending && $this->children->of($slot) === [$child]) {
            $this->logger->info("{$child} is replaced: {$child->spent}");
            $child->spent = '';
            $this->succession->replace($slot);
        }
    }

    /** @return list<Slot> */
    private function applicationSlots(): array
    {
        return array_values(array_filter($this->slots, static fn(Slot $slot): bool => $slot->duty->runsApplication));
    }

    /** @return list<Child> */
    private function serving(): array
    {
        return array_values(array_filter(
            $this->children->thatRunTheApplication(),
            static fn(Child $child): bool => $child->readyAt !== null,
        ));
    }

    private function ended(Child $child): void
    {
        $slot = $child->slot;
        if ($child->counted !== null) {
            $this->past->add($child->counted);
        }
        $this->surveys->gone($child);
        if ($child === $slot->successor && !$this->stopping) {
            $slot->successor = null;
            $this->notReplaced($slot, $child->story());
        } elseif ($child === $slot->current && !$this->stopping) {
            $this->starting && $child->failure !== null && throw AppException::told($this->app, $child->failure);
            $this->vacate($child);
        } elseif ($child->readyAt !== null && $child->end !== '' && !$child->drained) {
            $this->logger->warning("{$child} {$child->end} before all was answered that had come");
        }
        $this->replace($slot);
    }

    /** Makes room in its slot for another process. */
    private function vacate(Child $child): void
    {
        $slot = $child->slot;
        $slot->current = null;
        $slot->failures = $child->readyAt === null ? $slot->failures + 1 : 0;
        $slot->deaths = match (true) {
            $child->readyAt === null => $slot->deaths,
            hrtime(true) - $child->readyAt > self::EARLY_END_NANOSECONDS => 0,
            default => $slot->deaths + 1,
        };
        $this->lost($slot, $child->story());
    }

    private function notReplaced(Slot $slot, string $why): void
    {
        $renewed = $this->succession->failed();
        $but = (int) $renewed === 0
            ? ''
            : ", but for {$renewed} of "
            . \count($this->applicationSlots())
            . ' processes, which '
            . ($renewed === 1 ? 'runs' : 'run')
            . ' the new code';
        $this->logger->error(
            ($renewed === null ? "{$slot->duty->name} could not be replaced, and goes on: " : "The reload failed, and what served before goes on{$but}: ")
                . $why,
        );
        if ($slot->current === null) {
            $this->lost($slot, $slot->duty->name . ' is missing');
        }
    }

    private function lost(Slot $slot, string $story): void
    {
        $this->starting && throw AppException::told($this->app, "{$this->app} can't be served: {$story}");
        $delay = match (true) {
            $slot->failures > 0 => $this->backoff->after($slot->failures),
            $slot->deaths > 1 => $this->respite->after($slot->deaths - 1),
            default => 0.0,
        };
        $slot->startAt = (int) hrtime(true) + self::nanoseconds($delay);
        $this->logger->error("{$story}; another takes its place" . ($delay > 0 ? \sprintf(' in %.1f s', $delay) : ''));
    }

    private static function nanoseconds(float $seconds): int
    {
        return (int) min($seconds * 1e9, 1e18);
    }
}
