<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;

/** Keeps commands during the pause before their next attempt. Then calls {@see AttemptEvents::onRetryDue()}. */
final class DelayedRetries
{
    /** @var array<int, PendingCommand> waiting commands, by id */
    private array $commands = [];

    /** @var array<int, string> callback id of each timer, by the command's id */
    private array $timerIds = [];

    /** @var \WeakReference<AttemptEvents> */
    private readonly \WeakReference $events;

    public function __construct(AttemptEvents $events)
    {
        $this->events = \WeakReference::create($events);
    }

    /** @param float $delay seconds until the next attempt */
    public function add(PendingCommand $pending, float $delay): void
    {
        $this->commands[$pending->id] = $pending;
        $this->timerIds[$pending->id] = EventLoop::delay($delay, function () use ($pending): void {
            unset($this->commands[$pending->id], $this->timerIds[$pending->id]);
            $this->events->get()?->onRetryDue($pending);
        });
    }

    /** @return bool whether the command was waiting here */
    public function remove(PendingCommand $pending): bool
    {
        if (!isset($this->commands[$pending->id])) {
            return false;
        }
        EventLoop::cancel($this->timerIds[$pending->id]);
        unset($this->commands[$pending->id], $this->timerIds[$pending->id]);

        return true;
    }

    /** @return array<int, PendingCommand> by id */
    public function commands(): array
    {
        return $this->commands;
    }

    public function clear(): void
    {
        array_map(EventLoop::cancel(...), $this->timerIds);
        $this->commands = $this->timerIds = [];
    }
}
