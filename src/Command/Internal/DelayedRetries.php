<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;

/** Keeps commands during the pause before their next attempt. Then calls {@see AttemptEvents::onRetryDue()}. */
final class DelayedRetries
{
    /** @var array<int, array{PendingCommand, string}> waiting commands with the id of their timer, by id */
    private array $waiting = [];

    /** @var \WeakReference<AttemptEvents> */
    private readonly \WeakReference $events;

    public function __construct(AttemptEvents $events)
    {
        $this->events = \WeakReference::create($events);
    }

    /** @param float $delay seconds until the next attempt */
    public function add(PendingCommand $pending, float $delay): void
    {
        $timerId = EventLoop::delay($delay, function () use ($pending): void {
            unset($this->waiting[$pending->id]);
            $this->events->get()?->onRetryDue($pending);
        });
        $this->waiting[$pending->id] = [$pending, $timerId];
    }

    /** @return bool whether the command was waiting here */
    public function remove(PendingCommand $pending): bool
    {
        $isWaiting = isset($this->waiting[$pending->id]);
        EventLoop::cancel($this->waiting[$pending->id][1] ?? '');
        unset($this->waiting[$pending->id]);

        return $isWaiting;
    }

    /** @return array<int, PendingCommand> by id */
    public function commands(): array
    {
        return array_map(static fn(array $waiting): PendingCommand => $waiting[0], $this->waiting);
    }

    public function clear(): void
    {
        array_map(EventLoop::cancel(...), array_column($this->waiting, 1));
        $this->waiting = [];
    }
}
