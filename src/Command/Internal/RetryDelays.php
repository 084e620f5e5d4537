<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;

/** Commands that wait for the time of their next attempt. No launcher has them. */
final class RetryDelays
{
    /** @var array<int, PendingCommand> by id */
    private array $tickets = [];

    /** @var array<int, string> timer of each pause, by the command's id */
    private array $watchers = [];

    /** @param \Closure(PendingCommand): void $due called when a pause has ended; the command has been removed then */
    public function __construct(private readonly \Closure $due) {}

    /** @param float $delay seconds */
    public function add(PendingCommand $ticket, float $delay): void
    {
        $this->tickets[$ticket->id] = $ticket;
        $this->watchers[$ticket->id] = EventLoop::delay($delay, function () use ($ticket): void {
            unset($this->tickets[$ticket->id], $this->watchers[$ticket->id]);
            ($this->due)($ticket);
        });
    }

    /** @return bool whether the command was waiting here */
    public function remove(PendingCommand $ticket): bool
    {
        if (!isset($this->tickets[$ticket->id])) {
            return false;
        }
        EventLoop::cancel($this->watchers[$ticket->id]);
        unset($this->tickets[$ticket->id], $this->watchers[$ticket->id]);

        return true;
    }

    /** @return array<int, PendingCommand> by id */
    public function tickets(): array
    {
        return $this->tickets;
    }

    public function clear(): void
    {
        array_map(EventLoop::cancel(...), $this->watchers);
        $this->tickets = $this->watchers = [];
    }
}
