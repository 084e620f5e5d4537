<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Psr\Log\LoggerInterface;
use Spindle\Http\AppException;
use Spindle\Http\SupervisorOptions;
use Spindle\Internal\Backoff;
use Spindle\Internal\RepeatedWarnings;

/** Keeps a process running in each slot. Replaces a process that has ended, runs old code or has reached a limit. */
final class Slots
{
    private const EARLY_END_NANOSECONDS = 10_000_000_000;

    private readonly ReplacementQueue $replacements;

    /** Pauses until another process is started: after a failed start, and after an early end. */
    private readonly Backoff $startBackoff;
    private readonly Backoff $earlyEndBackoff;

    private bool $starting = true;

    /** @var array<int, Child> processes with old code that were running when the last reload was complete, by pid */
    private array $outdated = [];

    private readonly RepeatedWarnings $warnings;
    private readonly LoadedCode $code;

    /** @param list<Slot> $slots */
    public function __construct(
        private readonly string $app,
        private readonly array $slots,
        private readonly Children $children,
        private readonly string $readyMessage,
        private readonly SupervisorOptions $options,
        private readonly LoggerInterface $logger,
    ) {
        $this->replacements = new ReplacementQueue($this->ofApplication());
        $this->startBackoff = new Backoff(0.2, 2.0, 30.0, 0.2);
        $this->earlyEndBackoff = new Backoff(0.1, 2.0, 1.0, 0.2);
        $this->warnings = new RepeatedWarnings();
        $this->code = new LoadedCode();
    }

    /**
     * Starts the processes that are due. Returns early if a signal arrives, because the signal may stop the server.
     *
     * @throws AppException when the first process of a slot can't be started
     */
    public function startDueProcesses(int $now, SignalInbox $signals): void
    {
        foreach ($this->slots as $slot) {
            if (!$signals->isEmpty()) {
                return;
            }
            if ($slot->role->runsApplication && $this->awaitsFirst()) {
                continue; // the first process shows whether the application can be loaded; the others start later
            }
            if ($slot->current === null && $slot->successor === null && $slot->startAt <= $now) {
                $started = $this->start($slot);
                $started instanceof Child ? $slot->current = $started : $this->scheduleStart($slot, $started);
            }
        }
        $slot = $this->hasStarted() ? $this->replacements->next() : null;
        if ($slot !== null) {
            $started = $this->start($slot);
            $started instanceof Child ? $slot->successor = $started : $this->handleFailedReplacement($slot, $started);
        }
    }

    /** Returns the time by hrtime() at which the next process has to be started in an empty slot. */
    public function nextStart(): int
    {
        $next = \PHP_INT_MAX;
        foreach ($this->awaitsFirst() ? [] : $this->slots as $slot) {
            $next = $slot->current === null && $slot->successor === null ? min($next, $slot->startAt) : $next;
        }

        return $next;
    }

    /** @param string $details appended to the log entry */
    public function reload(string $details): void
    {
        $changed = $this->code->changed(\dirname(__DIR__, 3) . '/');
        if ($changed !== null) {
            $this->logger->error(
                "The reload failed, and the old processes continue: {$changed} was replaced or removed. A reload can't"
                    . ' replace code of Spindle. Restart this server',
            );

            return;
        }
        $this->logger->info(
            ($this->replacements->isReloading ? 'Reloading again, instead of the reload in progress' : 'Reloading')
                . $details,
        );
        $slot = $this->replacements->reload();
        if ($slot?->successor !== null) {
            $slot->successor->end(Message::Stop);
            $slot->successor = null;
        }
    }

    /** Handles a process that serves now. A successor becomes the current process, and the previous one is ended. */
    public function handleReady(Child $child): void
    {
        $slot = $child->slot;
        if ($child !== $slot->successor) {
            return;
        }
        [$before, $slot->current, $slot->successor] = [$slot->current, $child, null];
        $before?->end(Message::HandOver, pack('e', $this->options->watch ? 0.0 : \INF));
        if ($this->replacements->succeeded()) {
            $this->logger->info('Reloaded');
            $this->outdated = array_filter(
                $this->children->runningApplication(),
                static fn(Child $running): bool => $running !== $running->slot->current,
            );
            $this->reportEndOfOutdated();
            foreach ($this->slots as $other) {
                if (!$other->role->runsApplication) {
                    $other->current?->channel->send(Message::Reloaded);
                }
            }
        }
    }

    /** @param bool $wouldRecur whether the reason, such as a low memory limit, would soon apply to a new process too */
    public function handleReplacementRequest(Child $child, string $why, bool $wouldRecur): void
    {
        if ($wouldRecur && $this->warnings->isNew('maxMemoryBytes')) {
            $this->logger->warning(
                "{$child} is replaced soon after its start, because {$why}."
                    . " The limit of {$this->options->maxMemoryBytes} bytes is too low for this application",
            );
        }
        $child->replacementReason = $why;
        $this->queueReplacement($child->slot);
    }

    /** Lets another process start in the slot of a process that still answers its last requests. */
    public function startReplacementOf(Child $child): void
    {
        if ($child === $child->slot->current && !$this->starting) {
            $this->vacate($child);
        }
    }

    /**
     * @param bool $stopping whether the supervisor is stopping; then no other process is started
     *
     * @throws AppException when the first process of a slot has failed to start
     */
    public function handleEnd(Child $child, bool $stopping): void
    {
        $slot = $child->slot;
        if (isset($this->outdated[$child->pid])) {
            unset($this->outdated[$child->pid]);
            $stopping ? null : $this->reportEndOfOutdated();
        }
        if ($child === $slot->successor && !$stopping) {
            $slot->successor = null;
            $this->handleFailedReplacement($slot, $child->endDescription());
        } elseif ($child === $slot->current && !$stopping) {
            if ($this->starting && $child->startFailure !== null) {
                throw AppException::reported($this->app, $child->startFailure);
            }
            $this->vacate($child);
        } elseif ($child->readyAt !== null && $child->endReason !== '' && !$child->answeredAll) {
            $this->logger->warning("{$child} {$child->endReason} before all received requests were answered");
        }
        $this->queueReplacement($slot);
    }

    public function closeApplicationSockets(): void
    {
        array_map(static fn(Slot $slot) => $slot->role->closeSockets(), $this->ofApplication());
    }

    public function closeSockets(): void
    {
        array_map(static fn(Slot $slot) => $slot->role->closeSockets(), $this->slots);
    }

    private function reportEndOfOutdated(): void
    {
        if ($this->outdated === []) {
            $this->logger->info('The old processes have ended');
        }
    }

    /** Returns whether the process of the first slot has been started and does not serve yet. */
    private function awaitsFirst(): bool
    {
        return $this->starting && $this->slots[0]->current !== null && $this->slots[0]->current->readyAt === null;
    }

    /** @return Child|string the started process, or the reason why it could not be started */
    private function start(Slot $slot): Child|string
    {
        $changed = $this->starting ? null : $this->code->changed();
        if ($changed !== null && $this->warnings->isNew($changed)) {
            $this->logger->warning(
                "{$changed} was replaced or removed, but new processes use the version that this server has loaded."
                    . ' Other new code may not work with it. Restart this server',
            );
        }
        try {
            $child = $this->children->fork($slot);
            $child->startWithin($this->options->startTimeout);

            return $child;
        } catch (ForkException $failure) {
            ++$slot->startFailures;

            return "{$slot->role->name} could not be started: {$failure->getMessage()}";
        }
    }

    /** Returns whether each slot has had a serving process. Logs the ready message the first time that this is true. */
    private function hasStarted(): bool
    {
        foreach ($this->starting ? $this->slots : [] as $slot) {
            if ($slot->current?->readyAt === null) {
                return false;
            }
        }
        if ($this->starting) {
            $this->starting = false;
            $this->code->recordLoaded();
            $this->logger->info($this->readyMessage);
        }

        return true;
    }

    /**
     * Queues the replacement of the slot's process if the process has asked for it. Does nothing while another process
     * of the slot is running, to limit the number of processes. When that process ends, {@see handleEnd()} repeats the
     * call.
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

    private function vacate(Child $child): void
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
            . \count($this->ofApplication())
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
        if ($this->starting && ($slot->role->runsApplication || $slot->startFailures > 0)) {
            throw AppException::reported($this->app, "{$this->app} can't be served: {$reason}");
        }
        $delay = match (true) {
            $slot->startFailures > 0 => $this->startBackoff->after($slot->startFailures),
            $slot->earlyEnds > 1 => $this->earlyEndBackoff->after($slot->earlyEnds - 1),
            default => 0.0,
        };
        $slot->startAt = (int) hrtime(true) + (int) ($delay * 1e9);
        $this->logger->error("{$reason}; another takes its place" . ($delay > 0 ? \sprintf(' in %.1F s', $delay) : ''));
    }

    /** @return list<Slot> */
    private function ofApplication(): array
    {
        return array_values(array_filter($this->slots, static fn(Slot $slot): bool => $slot->role->runsApplication));
    }
}
