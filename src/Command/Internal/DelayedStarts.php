<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;
use Spindle\Command\CommandPoolOptions;
use Spindle\Internal\Launcher\Process\WaitingJobs;
use Spindle\Internal\LoopCallback;

/**
 * Starts queued commands when a slot is free, with at least {@see CommandPoolOptions::$delay} between two starts.
 * Takes the commands from the lanes of {@see WaitingJobs} in rotation.
 */
final class DelayedStarts
{
    /** Interval of the timer that keeps the event loop running while commands wait in a paused pool. */
    private const PAUSED_SECONDS = 3600;

    /** @var WaitingJobs<PendingCommand> */
    private readonly WaitingJobs $waiting;

    /** Earliest time of the next start, in nanoseconds of the monotonic clock. */
    private int $nextStartAt = 0;

    /** The command that was sent last, until a launcher reports the command's start or end. Delays the next start. */
    private ?PendingCommand $starting = null;

    private ?string $timerId = null;

    private bool $isPaused = false;

    /** @var \WeakReference<AttemptEvents> */
    private readonly \WeakReference $events;

    /** @param float $delay minimum seconds from one start to the next */
    public function __construct(private readonly float $delay, AttemptEvents $events)
    {
        $this->events = \WeakReference::create($events);
        $this->waiting = new WaitingJobs();
    }

    public function add(PendingCommand $pending): void
    {
        $this->waiting->add($pending);
        $this->schedule();
    }

    /** Begins the delay again, because the command may have waited in its launcher until the launcher was ready. */
    public function onStarted(PendingCommand $pending): void
    {
        if ($pending === $this->starting) {
            $this->starting = null;
            $this->nextStartAt = $this->afterDelay();
            $this->schedule();
        }
    }

    /** Sets the timer for the next start if no timer is set. Must be called when a slot may have become free. */
    public function schedule(): void
    {
        if ($this->starting?->launcher === null) {
            $this->starting = null; // the attempt has ended
        }
        if ($this->starting === null && !$this->waiting->isEmpty() && $this->timerId === null) {
            $left = $this->isPaused ? self::PAUSED_SECONDS : max(0, $this->nextStartAt - (int) hrtime(true)) / 1e9;
            $this->timerId = EventLoop::delay($left, $this->startNext(...));
        }
    }

    /** Keeps all commands here while the pool is paused. Otherwise, launchers would later start several at once. */
    public function setPaused(bool $isPaused): void
    {
        $this->isPaused = $isPaused;
        LoopCallback::cancel($this->timerId);
        $this->schedule();
    }

    /** @return bool whether the command was in the queue */
    public function remove(PendingCommand $pending): bool
    {
        $isQueued = $this->waiting->remove($pending->id);
        if ($this->waiting->isEmpty()) {
            LoopCallback::cancel($this->timerId); // the timer would keep the event loop running
        }

        return $isQueued;
    }

    /** @return array<int, PendingCommand> by id */
    public function commands(): array
    {
        return $this->waiting->all();
    }

    public function clear(): void
    {
        $this->waiting->clear();
        $this->starting = null;
        LoopCallback::cancel($this->timerId);
    }

    private function afterDelay(): int
    {
        return (int) hrtime(true) + (int) ($this->delay * 1e9);
    }

    private function startNext(): void
    {
        $this->timerId = null;
        if ($this->isPaused) {
            $this->schedule();

            return;
        }
        $events = $this->events->get();
        if ($this->waiting->isEmpty() || $this->starting !== null || $events?->hasFreeSlot() !== true) {
            return;
        }
        $pending = $this->waiting->next();
        $this->nextStartAt = $this->afterDelay();
        $events->onStartDue($pending);
        $this->starting = $pending;
        $this->schedule();
    }
}
