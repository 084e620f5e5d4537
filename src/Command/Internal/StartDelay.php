<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;

/** Holds commands, in order, until a slot is free and the delay since the last start of any command has passed. */
final class StartDelay
{
    /** @var array<int, PendingCommand> waiting commands, by id */
    private array $commands = [];

    /** Earliest time of the next start, on the monotonic clock in nanoseconds. */
    private int $next = 0;

    /** The timer for the next start; null while none is set. */
    private ?string $watcher = null;

    /**
     * @param float                  $delay   seconds
     * @param \Closure(): bool       $hasSlot
     * @param \Closure(PendingCommand): void $start   called when a command may start; it has been removed then
     */
    public function __construct(
        private readonly float $delay,
        private readonly \Closure $hasSlot,
        private readonly \Closure $start,
    ) {}

    public function add(PendingCommand $pending): void
    {
        $this->commands[$pending->id] = $pending;
        $this->schedule();
    }

    /** Sets the timer for the next start. Call this when a slot may have become free. */
    public function schedule(): void
    {
        if ($this->commands !== [] && $this->watcher === null) {
            $left = max(0, $this->next - (int) hrtime(true)) / 1e9;
            $this->watcher = EventLoop::delay($left, $this->startNext(...));
        }
    }

    /** @return bool whether the command was waiting here */
    public function remove(PendingCommand $pending): bool
    {
        $isHere = isset($this->commands[$pending->id]);
        unset($this->commands[$pending->id]);

        return $isHere;
    }

    /** @return array<int, PendingCommand> by id */
    public function commands(): array
    {
        return $this->commands;
    }

    public function clear(): void
    {
        $this->commands = [];
        if ($this->watcher !== null) {
            EventLoop::cancel($this->watcher);
            $this->watcher = null;
        }
    }

    private function startNext(): void
    {
        $this->watcher = null;
        $pending = reset($this->commands);
        if ($pending === false || !($this->hasSlot)()) {
            return;
        }
        unset($this->commands[$pending->id]);
        $this->next = (int) hrtime(true) + (int) ($this->delay * 1e9);
        ($this->start)($pending);
        $this->schedule();
    }
}
