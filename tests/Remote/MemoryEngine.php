<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

use Revolt\EventLoop;
use Spindle\Internal\Clock;
use Spindle\Remote\MailboxMessage;

/** The queues, mailboxes and clock that several {@see MemoryBroker}s share, as machines share an engine. */
final class MemoryEngine
{
    /** @var array<string, MemoryQueue> */
    private array $queues = [];

    /** @var array<string, array<int, \Closure(MailboxMessage): void>> listeners by mailbox */
    private array $listeners = [];

    private int $last = 0;

    /** @param (\Closure(): float)|null $clock in seconds; null for Spindle's clock, which may be virtual */
    public function __construct(private readonly ?\Closure $clock = null) {}

    public function now(): float
    {
        return $this->clock === null ? Clock::now() : ($this->clock)();
    }

    public function queue(string $name): MemoryQueue
    {
        return $this->queues[$name] ??= new MemoryQueue($this);
    }

    /** @return list<string> */
    public function queueNames(): array
    {
        $names = array_map(strval(...), array_keys(array_filter(
            $this->queues,
            static fn(MemoryQueue $queue): bool => $queue->wasUsed(),
        )));
        sort($names, \SORT_STRING);

        return $names;
    }

    /**
     * @param \Closure(MailboxMessage): void $read
     *
     * @return int for {@see forget()}
     */
    public function listen(string $mailbox, \Closure $read): int
    {
        $this->listeners[$mailbox][++$this->last] = $read;

        return $this->last;
    }

    public function forget(string $mailbox, int $listener): void
    {
        unset($this->listeners[$mailbox][$listener]);
        if (($this->listeners[$mailbox] ?? null) === []) {
            unset($this->listeners[$mailbox]);
        }
    }

    /** @return bool whether a listener exists */
    public function send(string $mailbox, MailboxMessage $message): bool
    {
        $listeners = array_keys($this->listeners[$mailbox] ?? []);
        foreach ($listeners as $listener) {
            EventLoop::queue(function () use ($mailbox, $listener, $message): void {
                $read = $this->listeners[$mailbox][$listener] ?? null;
                if ($read !== null) {
                    $read($message);
                }
            });
        }

        return $listeners !== [];
    }
}
