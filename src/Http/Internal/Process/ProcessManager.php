<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Http\AppException;
use Spindle\Http\Internal\Message\HandlerFailure;
use Spindle\Http\SupervisorOptions;
use Spindle\Internal\Terminal;

/**
 * Keeps one process running in each of the {@see Slots}, and ends all processes before {@see run()} returns. The
 * supervisor itself never loads the application. run() repeats two steps. First, the event loop runs until a signal or
 * a message arrives, or a deadline has passed. Then run() starts and ends processes while the event loop is stopped,
 * because a fork is possible only outside of the event loop.
 */
final class ProcessManager implements ChildMessages
{
    /**
     * Nanoseconds from a process's report of SIGTERM until its replacement starts. A service manager may send SIGTERM
     * to all processes. Then the supervisor gets SIGTERM too, usually within this time, and starts no replacement.
     */
    private const TERMINATION_NANOSECONDS = 100_000_000;

    private readonly Children $children;
    private readonly Slots $slots;
    private readonly Terminal $terminal;
    private readonly EndedProcessTotals $endedTotals;
    private readonly ProcessQueries $queries;

    private ManagerState $state = ManagerState::Running;

    /** Signal that arrived while the supervisor was stopping, and made it kill all processes; 0 if there was none. */
    private int $killSignal = 0;

    /** Times by hrtime() of the next pings, and of the next scan of the files. */
    private int $pingAt = 0;
    private int $scanAt = 0;

    /**
     * @param string            $app          the file that the processes load
     * @param list<ProcessRole> $roles        one for each process to keep running
     * @param string            $readyMessage logged when all processes serve
     * @param FileWatch|null    $files        files whose changes cause a reload
     */
    public function __construct(
        string $app,
        array $roles,
        string $readyMessage,
        private readonly SupervisorOptions $options,
        private readonly LoggerInterface $logger,
        private readonly ?FileWatch $files = null,
    ) {
        $slots = array_map(static fn(ProcessRole $role): Slot => new Slot($role), $roles);
        $sockets = array_merge(...array_map(static fn(ProcessRole $role): array => $role->sockets, $roles));
        $this->children = new Children($logger, $this, $sockets);
        $this->slots = new Slots($app, $slots, $this->children, $readyMessage, $options, $logger);
        $this->terminal = new Terminal();
        $this->endedTotals = new EndedProcessTotals();
        $this->queries = new ProcessQueries($this->endedTotals);
    }

    /**
     * Runs until {@see close()}, {@see kill()} or a signal ends the server. Returns when no process is left.
     *
     * @return int the signal that made this method kill all processes; 0 if there was none
     *
     * @throws AppException when the first process of a slot fails to start; then no process is left
     */
    public function run(): int
    {
        $signals = new SignalInbox();
        if ($signals->ignoresInterrupt) {
            $this->logger->info(
                'SIGINT stays ignored, because it was ignored at the start, as in a background job of a script.'
                    . ' SIGTERM stops the server',
            );
        }
        $errorHandler = EventLoop::getErrorHandler();
        EventLoop::setErrorHandler(
            $errorHandler ?? fn(\Throwable $failure) => HandlerFailure::logUncaught($failure, $this->logger),
        );
        try {
            while (!$this->isStopping() || !$this->children->isEmpty()) {
                $this->checkDeadlines((int) hrtime(true));
                $this->isStopping()
                    ? $this->stopAdmin()
                    : $this->slots->startDueProcesses((int) hrtime(true), $signals);
                $isEndDue = $this->state === ManagerState::Closing || $this->state === ManagerState::Killed;
                $this->children->wait($isEndDue || !$signals->isEmpty() ? 0 : $this->nextDeadline());
                // Signals are handled first: if SIGTERM has also ended a process, that end must not count as a failure.
                array_map($this->handleSignal(...), $signals->take());
                $this->endIfRequested();
                array_map($this->handleEnd(...), $this->children->reap());
            }
        } finally {
            $this->children->killAll();
            $this->slots->closeSockets();
            $signals->close();
            EventLoop::setErrorHandler($errorHandler);
        }

        return $this->killSignal;
    }

    /** Makes {@see run()} end the processes. Each process first answers the requests that it has received. */
    public function close(): void
    {
        if ($this->state === ManagerState::Running) {
            $this->state = ManagerState::Closing;
        }
        EventLoop::getDriver()->stop();
    }

    public function kill(): void
    {
        $this->state = ManagerState::Killed;
        EventLoop::getDriver()->stop();
    }

    private function isStopping(): bool
    {
        return $this->state === ManagerState::Stopping || $this->state === ManagerState::Killed;
    }

    private function handleSignal(int $signal): void
    {
        if ($signal === \SIGHUP && $this->state === ManagerState::Running && $this->terminal->isClosed()) {
            $this->logger->info('The terminal was closed');
            $this->close();
        } elseif ($signal === \SIGHUP) {
            $this->reload('');
        } elseif ($signal === \SIGUSR1 || $signal === \SIGUSR2) {
            $this->logger->warning(
                ($signal === \SIGUSR1 ? 'SIGUSR1' : 'SIGUSR2')
                    . ' was ignored: SIGHUP reloads the code, SIGTERM ends the server',
            );
        } elseif ($signal !== \SIGCHLD && $this->state !== ManagerState::Running) {
            $this->killSignal = $signal;
            $this->kill();
        } elseif ($signal !== \SIGCHLD) {
            $this->close();
        }
    }

    private function endIfRequested(): void
    {
        if ($this->state === ManagerState::Killed) {
            $this->children->killAll();
        } elseif ($this->state === ManagerState::Closing) {
            $this->stop();
        }
    }

    private function reload(string $details): void
    {
        if ($this->state === ManagerState::Running) {
            $this->slots->reload($details);
        }
    }

    private function stop(): void
    {
        $this->state = ManagerState::Stopping;
        $this->logger->info('Stopping: received requests are answered first');
        $this->slots->closeApplicationSockets();
        foreach ($this->children->runningApplication() as $child) {
            $child->end(Message::Stop);
        }
    }

    /** Stops the admin process, the only one left, after all processes of the application have ended. */
    private function stopAdmin(): void
    {
        if ($this->children->runningApplication() !== []) {
            return;
        }
        $this->slots->closeSockets();
        foreach ($this->children as $child) {
            if (!$child->stopRequested) {
                $child->end(Message::Stop);
            }
        }
    }

    private function checkDeadlines(int $now): void
    {
        $isPingDue = $this->pingAt <= $now;
        foreach ($this->children as $child) {
            $child->checkDeadlines($now, $this->options->startTimeout);
            if ($child->replaceAt <= $now) {
                $child->replaceAt = \PHP_INT_MAX;
                $this->isStopping() ? null : $this->slots->startReplacementOf($child);
            }
            $isPingDue ? $child->ping($this->options->blockTimeout) : null;
        }
        if ($isPingDue) {
            $this->pingAt = $now + (int) min($this->options->blockTimeout / Child::MAX_UNANSWERED_PINGS * 1e9, 1e18);
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

    private function nextDeadline(): int
    {
        $scanAt = $this->files === null ? \PHP_INT_MAX : $this->scanAt;
        $startAt = $this->isStopping() ? \PHP_INT_MAX : $this->slots->nextStart();
        $next = min($this->pingAt, $this->queries->nextDeadline(), $scanAt, $startAt);
        foreach ($this->children as $child) {
            $next = min($next, $child->nextDeadline());
        }

        return $next;
    }

    public function handleMessage(Child $child, Message $message, int $number, string $payload): void
    {
        match ($message) {
            Message::Ready => $this->handleReady($child, $payload),
            Message::Failed => $child->startFailure = $payload,
            Message::Ending => $this->handleEnding($child, $payload),
            Message::Terminated => $this->handleTermination($child),
            Message::Pong => $child->handlePong(),
            Message::ReplacementRequest => $this->slots->handleReplacementRequest($child, $payload, $number === 1),
            Message::Query => $this->queries->begin($child, $number, $payload, $this->servingProcesses()),
            Message::PreliminaryAnswer, Message::Answer => $this->queries->addAnswer(
                $child,
                $number,
                $payload,
                $message === Message::PreliminaryAnswer,
            ),
            Message::AllAnswered => $child->answeredAll = true,
            Message::Statistics => $child->lastStatistics = $payload,
            Message::Position => $child->handlePosition($payload, $number === 1),
            Message::Blocked => $this->logger->warning("{$child} blocks its event loop{block}", ['block' => $payload]),
            default => throw new \ValueError("{$child} sent {$message->name}"),
        };
    }

    /** @param string $timeouts payload of {@see Message::Ready} */
    private function handleReady(Child $child, string $timeouts): void
    {
        $child->handleReady($timeouts);
        if (!$child->stopRequested) {
            $this->slots->handleReady($child);
        }
    }

    private function handleEnding(Child $child, string $why): void
    {
        $child->handleEnding($why);
        $child->replaceAt = \PHP_INT_MAX; // handleEnd() will replace the process
    }

    /** Schedules the replacement of a process that got SIGTERM and still answers its last requests. */
    private function handleTermination(Child $child): void
    {
        $child->handleEnding('received SIGTERM');
        $child->replaceAt = (int) hrtime(true) + self::TERMINATION_NANOSECONDS;
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
        if ($child->lastStatistics !== null) {
            $this->endedTotals->add($child->lastStatistics);
        }
        $this->queries->removeProcess($child);
        $this->slots->handleEnd($child, $this->isStopping());
    }
}
