<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;

/** Commands that wait for the time of their next attempt. No launcher has them. */
final class RetryDelays
{
    /** @var array<int, PendingCommand> by id */
    private array $commands = [];

    /** @var array<int, string> timer of each pause, by the command's id */
    private array $watchers = [];

    /** @param \Closure(PendingCommand): void $due called when a pause has ended; the command has been removed then */
    public function __construct(private readonly \Closure $due) {}

    /** @param float $delay seconds */
    public function add(PendingCommand $pending, float $delay): void
    {
        $this->commands[$pending->id] = $pending;
        $this->watchers[$pending->id] = EventLoop::delay($delay, function () use ($pending): void {
            unset($this->commands[$pending->id], $this->watchers[$pending->id]);
            ($this->due)($pending);
        });
    }

    /** @return bool whether the command was waiting here */
    public function remove(PendingCommand $pending): bool
    {
        if (!isset($this->commands[$pending->id])) {
            return false;
        }
        EventLoop::cancel($this->watchers[$pending->id]);
        unset($this->commands[$pending->id], $this->watchers[$pending->id]);

        return true;
    }

    /** @return array<int, PendingCommand> by id */
    public function commands(): array
    {
        return $this->commands;
    }

    public function clear(): void
    {
        array_map(EventLoop::cancel(...), $this->watchers);
        $this->commands = $this->watchers = [];
    }
}
