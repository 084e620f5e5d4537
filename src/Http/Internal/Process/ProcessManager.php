<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Http\AppException;
use Spindle\Http\Internal\Message\HandlerFailure;
use Spindle\Http\Internal\Server\Listeners;
use Spindle\Http\Internal\Server\RepeatedWarnings;
use Spindle\Http\SupervisorOptions;
use Spindle\Internal\Backoff;
use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Internal\Terminal;

/**
 * The supervisor's main loop. It starts processes, replaces those that have ended, run old code or have reached a
 * limit, and stops all of them before it returns. The supervisor never loads the application. It runs the event loop
 * until a signal or a message arrives, or a deadline has passed. Then it acts outside of the loop, so that it can fork.
 */
final class ProcessManager
{
    /** Nanoseconds of serving after which an end does not count as early. */
    private const EARLY_END_NANOSECONDS = 10_000_000_000;

    /** Number of unanswered pings after which a process is killed. */
    private const MAX_UNANSWERED_PINGS = 4;

    /** Nanoseconds in which a process can report its position in the code before it is killed. */
    private const REPORT_NANOSECONDS = 250_000_000;

    /**
     * Nanoseconds from a process's report of SIGTERM until its replacement starts. If SIGTERM was sent to all
     * processes, the supervisor gets the signal in this time too, and starts no replacement.
     */
    private const TERMINATION_NANOSECONDS = 100_000_000;

    /** Seconds that a stopping process has after its own timeout before the supervisor kills it. */
    private const GRACE_SECONDS = 1.0;

    /** @var list<Slot> */
    private readonly array $slots;

    private readonly Children $children;
    private readonly Terminal $terminal;
    private readonly ReplacementQueue $replacements;
    private readonly EndedProcessTotals $endedTotals;
    private readonly ProcessQueries $queries;

    /** Pauses before another process starts: after a failed start, and after an early end. */
    private readonly Backoff $startBackoff;
    private readonly Backoff $earlyEndBackoff;

    /** Whether some slot has not had a serving process yet. */
    private bool $starting = true;

    /** Requests of {@see close()} and {@see kill()}, on which the main loop acts. */
    private bool $isClosing = false;
    private bool $isKilled = false;

    private bool $stopping = false;

    private readonly RepeatedWarnings $warnings;

    /** The second stop signal, which kills all processes; 0 before. */
    private int $killSignal = 0;

    /** When the next pings are sent, and when files are scanned next, by hrtime(). */
    private int $pingAt = 0;
    private int $scanAt = 0;

    /**
     * @param string            $app          the file that the processes load
     * @param list<ProcessRole> $roles        one per process
     * @param string            $readyMessage logged when all processes serve
     * @param FileWatch|null    $files        files whose changes cause a reload
     */
    public function __construct(
        private readonly string $app,
        array $roles,
        private readonly string $readyMessage,
        private readonly SupervisorOptions $options,
        private readonly LoggerInterface $logger,
        private readonly ?FileWatch $files = null,
    ) {
        $this->slots = array_map(static fn(ProcessRole $role): Slot => new Slot($role), $roles);
        $this->children = new Children(
            $logger,
            $this->handleMessage(...),
            array_merge(...array_map(static fn(ProcessRole $role): array => $role->sockets, $roles)),
        );
        $this->warnings = new RepeatedWarnings();
        $this->terminal = new Terminal();
        $this->replacements = new ReplacementQueue($this->applicationSlots());
        $this->endedTotals = new EndedProcessTotals();
        $this->queries = new ProcessQueries($this->endedTotals);
        $this->startBackoff = new Backoff(0.2, 2.0, 30.0, 0.2);
        $this->earlyEndBackoff = new Backoff(0.1, 2.0, 1.0, 0.2);
    }

    /**
     * Runs until it is closed or killed, and returns when no process is left.
     *
     * @return int the signal that killed all processes, or 0
     *
     * @throws AppException when the first process of a slot fails to start; no process is left then
     */
    public function run(): int
    {
        $signals = new SignalInbox();
        $errorHandler = EventLoop::getErrorHandler();
        EventLoop::setErrorHandler(
            $errorHandler ?? fn(\Throwable $failure) => HandlerFailure::logUncaught($failure, $this->logger),
        );
        try {
            while (!$this->stopping || !$this->children->isEmpty()) {
                $this->checkDeadlines((int) hrtime(true));
                $this->stopping ? $this->stopAdmin() : $this->startDueProcesses((int) hrtime(true));
                $isRequested = $this->isKilled || $this->isClosing && !$this->stopping || !$signals->isEmpty();
                $this->children->wait($isRequested ? 0 : $this->nextDeadline());
                // Signals are handled before ended processes: a process that the same signal has ended has not failed.
                array_map($this->handleSignal(...), $signals->take());
                $this->handleRequests();
                array_map($this->handleEnd(...), $this->children->reap());
            }
        } finally {
            $this->children->killAll();
            array_map(self::closeSockets(...), $this->slots);
            $signals->close();
            EventLoop::setErrorHandler($errorHandler);
        }

        return $this->killSignal;
    }

    /** Requests the end of all processes, after they have answered the requests that have arrived. */
    public function close(): void
    {
        $this->isClosing = true;
        EventLoop::getDriver()->stop();
    }

    /** Requests the end of all processes now. */
    public function kill(): void
    {
        $this->isClosing = $this->isKilled = true;
        EventLoop::getDriver()->stop();
    }

    private function handleSignal(int $signal): void
    {
        if ($signal === \SIGHUP && !$this->isClosing && $this->terminal->isClosed()) {
            $this->logger->info('The terminal was closed');
            $this->close();
        } elseif ($signal === \SIGHUP) {
            $this->reload('');
        } elseif ($signal === \SIGUSR1 || $signal === \SIGUSR2) {
            $this->logger->warning(
                ($signal === \SIGUSR1 ? 'SIGUSR1' : 'SIGUSR2')
                    . ' was ignored: SIGHUP reloads the code, SIGTERM ends the server',
            );
        } elseif ($signal !== \SIGCHLD && $this->isClosing) {
            $this->killSignal = $signal;
            $this->kill();
        } elseif ($signal !== \SIGCHLD) {
            $this->close();
        }
    }

    private function handleRequests(): void
    {
        if ($this->isKilled) {
            $this->stopping = true;
            $this->children->killAll();
        } elseif ($this->isClosing && !$this->stopping) {
            $this->stop();
        }
    }

    /** @param string $details appended to the log entry */
    private function reload(string $details): void
    {
        if ($this->isClosing) {
            return;
        }
        $this->logger->info(
            ($this->replacements->isReloading() ? 'Reloading again, instead of the reload in progress' : 'Reloading')
                . $details,
        );
        $slot = $this->replacements->reload();
        if ($slot?->successor !== null) {
            $this->endProcess($slot->successor, Message::Stop);
            $slot->successor = null;
        }
    }

    private function stop(): void
    {
        $this->stopping = true;
        $this->logger->info('Stopping: received requests are answered first');
        array_map(self::closeSockets(...), $this->applicationSlots());
        foreach ($this->children->runningApplication() as $child) {
            $this->endProcess($child, Message::Stop);
        }
    }

    /** Ends processes that do not run the application, after those that do. */
    private function stopAdmin(): void
    {
        if ($this->children->runningApplication() !== []) {
            return;
        }
        array_map(self::closeSockets(...), $this->slots);
        foreach ($this->children as $child) {
            if (!$child->stopRequested) {
                $this->endProcess($child, Message::Stop);
            }
        }
    }

    /** Sends {@see Message::Stop} or {@see Message::HandOver}. Kills a process that does not serve yet. */
    private function endProcess(Child $child, Message $how, string $payload = ''): void
    {
        $child->stopRequested = true;
        if ($child->readyAt === null) {
            $this->children->kill($child, '');

            return;
        }
        $child->channel->send($how, 0, $payload);
        $timeout = $how === Message::Stop ? $child->stopTimeout : $child->handOverTimeout;
        $child->endDeadline = min(
            $child->endDeadline,
            (int) hrtime(true) + self::nanoseconds($timeout + self::GRACE_SECONDS),
        );
        Signals::send($child->pid, \SIGCONT); // a suspended process (SIGSTOP) would not even read the message
    }

    private static function closeSockets(Slot $slot): void
    {
        foreach ($slot->role->sockets as $address => $socket) {
            if (\is_resource($socket)) {
                Listeners::removeSocketFile($address);
                fclose($socket);
            }
        }
    }

    private function checkDeadlines(int $now): void
    {
        foreach ($this->children as $child) {
            if ($child->startDeadline <= $now) {
                $child->startDeadline = \PHP_INT_MAX;
                $this->killWithReport($child, "did not start within {$this->options->startTimeout} s");
            }
            if ($child->endDeadline <= $now) {
                $child->endDeadline = \PHP_INT_MAX;
                $this->killWithReport(
                    $child,
                    'was killed, because it did not end in time: a handler blocks its event loop,'
                        . ' or the process was suspended (SIGSTOP)',
                );
            }
            if ($child->replaceAt <= $now) {
                $child->replaceAt = \PHP_INT_MAX;
                $isCurrent = $child === $child->slot->current;
                $isCurrent && !$this->starting && !$this->stopping ? $this->vacateSlot($child) : null;
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
        if ($this->scanAt <= $now && $this->files !== null) {
            $changes = $this->files->changes();
            if ($changes !== []) {
                $this->reload(': ' . implode(', ', $changes));
            }
            $this->scanAt = (int) hrtime(true) + FileWatch::INTERVAL_NANOSECONDS;
        }
        $this->queries->expire($now);
    }

    /** Pings a process or kills it. Counts pings instead of seconds, because the supervisor itself may have paused. */
    private function ping(Child $child): void
    {
        if ($child->readyAt === null) {
            return;
        }
        if ($child->unansweredPings++ < self::MAX_UNANSWERED_PINGS) {
            $child->channel->send(Message::Ping);
        } else {
            $this->killWithReport(
                $child,
                "was killed, because its event loop was blocked for {$this->options->stallTimeout} s:"
                    . ' a handler does not return',
            );
        }
    }

    /**
     * Asks a process by a signal for its position in the code, and kills it soon after. The signal interrupts system
     * calls of a handler, so only a process that will be killed gets it.
     */
    private function killWithReport(Child $child, string $why): void
    {
        if ($child->killAt === null) {
            $child->endReason = $child->endReason === '' ? $why : $child->endReason;
            $child->killAt = (int) hrtime(true) + self::REPORT_NANOSECONDS;
            Signals::send($child->pid, ServingProcess::REPORT_SIGNAL);
        }
    }

    private function startDueProcesses(int $now): void
    {
        foreach ($this->slots as $slot) {
            if ($slot->current === null && $slot->successor === null && $slot->startAt <= $now) {
                $slot->current = $this->start($slot, $this->scheduleStart(...));
            }
            if ($this->starting && $this->slots[0]->current?->readyAt === null) {
                return; // one process is enough to find out what is wrong with the application
            }
        }
        $slot = $this->hasStarted() ? $this->replacements->next() : null;
        if ($slot !== null) {
            $slot->successor = $this->start($slot, $this->handleFailedReplacement(...));
        }
    }

    /** @param \Closure(Slot, string): void $onFailure called with the reason */
    private function start(Slot $slot, \Closure $onFailure): ?Child
    {
        try {
            $child = $this->children->fork($slot);
            $child->startDeadline = (int) hrtime(true) + self::nanoseconds($this->options->startTimeout);

            return $child;
        } catch (ForkException $failure) {
            ++$slot->startFailures;
            $onFailure($slot, "{$slot->role->name} could not be started: {$failure->getMessage()}");

            return null;
        }
    }

    /** Returns whether each slot has had a serving process. Logs when this is first the case. */
    private function hasStarted(): bool
    {
        foreach ($this->starting ? $this->slots : [] as $slot) {
            if ($slot->current?->readyAt === null) {
                return false;
            }
        }
        if ($this->starting) {
            $this->starting = false;
            $this->logger->info($this->readyMessage);
        }

        return true;
    }

    /** Returns the next deadline of all, by hrtime(). */
    private function nextDeadline(): int
    {
        $scanAt = $this->files === null ? \PHP_INT_MAX : $this->scanAt;
        $next = min($this->pingAt, $this->queries->nextDeadline(), $scanAt);
        foreach ($this->children as $child) {
            $killAt = $child->killAt ?? \PHP_INT_MAX;
            $next = min($next, $child->startDeadline, $child->endDeadline, $child->replaceAt, $killAt);
        }
        foreach ($this->slots as $slot) {
            $next = $slot->current === null && $slot->successor === null ? min($next, $slot->startAt) : $next;
        }

        return $next;
    }

    private function handleMessage(Child $child, Message $message, int $number, string $payload): void
    {
        match ($message) {
            Message::Ready => $this->handleReady($child, $payload),
            Message::Failed => $child->startFailure = $payload,
            Message::Ending => $this->handleEnding($child, $payload),
            Message::Terminated => $this->handleTermination($child),
            Message::Pong => $child->unansweredPings = 0,
            Message::ReplacementRequest => $this->handleReplacementRequest($child, $payload, $number === 1),
            Message::Query => $this->queries->begin($child, $number, $payload, $this->servingProcesses()),
            Message::PreliminaryAnswer, Message::Answer => $this->queries->addAnswer(
                $child,
                $number,
                $payload,
                $message === Message::PreliminaryAnswer,
            ),
            Message::AllAnswered => $child->answeredAll = true,
            Message::Statistics => $child->lastStatistics = $payload,
            Message::Position => $child->position = $payload,
            default => throw new \ValueError("{$child} sent {$message->name}"),
        };
    }

    /** @param string $timeouts payload of {@see Message::Ready} */
    private function handleReady(Child $child, string $timeouts): void
    {
        /** @var array{1: float, 2: float} $seconds */
        $seconds = unpack('e2', $timeouts);
        [1 => $child->stopTimeout, 2 => $child->handOverTimeout] = $seconds;
        if ($child->stopRequested) {
            return; // the process was killed while it sent this message
        }
        $child->readyAt = (int) hrtime(true);
        $child->startDeadline = \PHP_INT_MAX;
        $slot = $child->slot;
        if ($child !== $slot->successor) {
            return;
        }
        [$before, $slot->current, $slot->successor] = [$slot->current, $child, null];
        if ($before !== null) {
            $this->endProcess($before, Message::HandOver, pack('e', $this->files === null ? \INF : 0.0));
        }
        if ($this->replacements->succeeded()) {
            $this->logger->info('Reloaded');
        }
    }

    /** Handles the report of a process that it ends. The process has as much time as after {@see Message::Stop}. */
    private function handleEnding(Child $child, string $why): void
    {
        $child->endReason = $why;
        $child->replaceAt = \PHP_INT_MAX; // handleEnd() will replace the process
        $child->endDeadline = min(
            $child->endDeadline,
            (int) hrtime(true) + self::nanoseconds($child->stopTimeout + self::GRACE_SECONDS),
        );
    }

    /** Schedules the replacement of a process that got SIGTERM and still answers its last requests. */
    private function handleTermination(Child $child): void
    {
        $this->handleEnding($child, 'received SIGTERM');
        $child->replaceAt = (int) hrtime(true) + self::TERMINATION_NANOSECONDS;
    }

    private function handleReplacementRequest(Child $child, string $why, bool $tooSoon): void
    {
        if ($tooSoon && $this->warnings->isNew('maxMemory')) {
            $this->logger->warning(
                "{$child} is replaced soon after its start, because {$why}."
                    . " The limit of {$this->options->maxMemory} bytes is too low for this application",
            );
        }
        $child->replacementReason = $why;
        $this->queueReplacement($child->slot);
    }

    /**
     * Queues the replacement of the slot's process if the process has requested one. While an earlier process of the
     * slot is ending, does nothing, to limit the number of processes: {@see handleEnd()} calls this method again.
     */
    private function queueReplacement(Slot $slot): void
    {
        $child = $slot->current;
        if ($child === null || $child->replacementReason === '' || $child->stopRequested) {
            return;
        }
        if ($this->children->ofSlot($slot) === [$child]) {
            $this->logger->info("{$child} is replaced: {$child->replacementReason}");
            $child->replacementReason = '';
            $this->replacements->add($slot);
        }
    }

    /** @return list<Slot> */
    private function applicationSlots(): array
    {
        return array_values(array_filter($this->slots, static fn(Slot $slot): bool => $slot->role->runsApplication));
    }

    /** @return list<Child> */
    private function servingProcesses(): array
    {
        return array_values(array_filter(
            $this->children->runningApplication(),
            static fn(Child $child): bool => $child->readyAt !== null,
        ));
    }

    private function handleEnd(Child $child): void
    {
        $slot = $child->slot;
        if ($child->lastStatistics !== null) {
            $this->endedTotals->add($child->lastStatistics);
        }
        $this->queries->removeProcess($child);
        if ($child === $slot->successor && !$this->stopping) {
            $slot->successor = null;
            $this->handleFailedReplacement($slot, $child->endDescription());
        } elseif ($child === $slot->current && !$this->stopping) {
            if ($this->starting && $child->startFailure !== null) {
                throw AppException::reported($this->app, $child->startFailure);
            }
            $this->vacateSlot($child);
        } elseif ($child->readyAt !== null && $child->endReason !== '' && !$child->answeredAll) {
            $this->logger->warning("{$child} {$child->endReason} before all received requests were answered");
        }
        $this->queueReplacement($slot);
    }

    /** Removes the current process from its slot, and schedules the start of another one. */
    private function vacateSlot(Child $child): void
    {
        $slot = $child->slot;
        $slot->current = null;
        $slot->startFailures = $child->readyAt === null ? $slot->startFailures + 1 : 0;
        $slot->earlyEnds = match (true) {
            $child->readyAt === null => $slot->earlyEnds,
            hrtime(true) - $child->readyAt > self::EARLY_END_NANOSECONDS => 0,
            default => $slot->earlyEnds + 1,
        };
        $this->scheduleStart($slot, $child->endDescription());
    }

    private function handleFailedReplacement(Slot $slot, string $why): void
    {
        $replacedCount = $this->replacements->failed();
        $except = (int) $replacedCount === 0
            ? ''
            : ", except for {$replacedCount} of "
            . \count($this->applicationSlots())
            . ' processes, which '
            . ($replacedCount === 1 ? 'runs' : 'run')
            . ' the new code';
        $this->logger->error(
            ($replacedCount === null
                ? "{$slot->role->name} could not be replaced, and continues: "
                : "The reload failed, and the old processes continue{$except}: ")
                . $why,
        );
        if ($slot->current === null) {
            $this->scheduleStart($slot, $slot->role->name . ' is missing');
        }
    }

    private function scheduleStart(Slot $slot, string $reason): void
    {
        $this->starting && throw AppException::reported($this->app, "{$this->app} can't be served: {$reason}");
        $delay = match (true) {
            $slot->startFailures > 0 => $this->startBackoff->after($slot->startFailures),
            $slot->earlyEnds > 1 => $this->earlyEndBackoff->after($slot->earlyEnds - 1),
            default => 0.0,
        };
        $slot->startAt = (int) hrtime(true) + self::nanoseconds($delay);
        $this->logger->error("{$reason}; another takes its place" . ($delay > 0 ? \sprintf(' in %.1f s', $delay) : ''));
    }

    private static function nanoseconds(float $seconds): int
    {
        return (int) min($seconds * 1e9, 1e18);
    }
}
