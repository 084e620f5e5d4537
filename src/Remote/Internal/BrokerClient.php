<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Internal\OwnLoop;
use Spindle\Remote\Broker;
use Spindle\Remote\MailboxMessage;

/**
 * Holds the queues and the mailbox that all {@see QueueClient} objects with the same broker object share. The mailbox
 * receives messages about the jobs of all these queues.
 */
final class BrokerClient
{
    /** @var \WeakMap<Broker, \WeakReference<self>>|null */
    private static ?\WeakMap $clients = null;

    private readonly string $mailbox;

    /** Id of the creating process. A fork creates another client, so that the fork reads no messages of its parent. */
    private readonly int $ownerPid;

    private readonly OwnLoop $loop;

    /** @var array<string, SharedQueue> by name */
    private array $queues = [];

    private int $lastJobNumber = 0;

    /** @var (\Closure(): void)|null closes the mailbox; null before {@see openMailbox()} */
    private ?\Closure $closeMailbox = null;

    private function __construct(public readonly Broker $broker)
    {
        $this->mailbox = bin2hex(random_bytes(9));
        $this->ownerPid = (int) getmypid();
        $this->loop = new OwnLoop();
    }

    public function __destruct()
    {
        if ($this->closeMailbox !== null) {
            ($this->closeMailbox)();
        }
    }

    public static function of(Broker $broker): self
    {
        $clients = self::$clients ??= new \WeakMap();
        $client = ($clients[$broker] ?? null)?->get();
        if ($client === null || !$client->isOwn()) {
            $client = new self($broker);
            $clients[$broker] = \WeakReference::create($client);
        }

        return $client;
    }

    /** Returns whether this process, with its current event loop, created the client. */
    public function isOwn(): bool
    {
        return $this->ownerPid === getmypid() && $this->loop->isCurrent();
    }

    public function newId(): string
    {
        return $this->mailbox . '-' . base_convert((string) ++$this->lastJobNumber, 10, 36);
    }

    public function queue(string $name): SharedQueue
    {
        return $this->queues[$name] ??= new SharedQueue($this->broker, $name, $this->mailbox);
    }

    public function openMailbox(): void
    {
        if ($this->closeMailbox !== null) {
            return;
        }
        $weak = \WeakReference::create($this);
        $this->closeMailbox = $this->broker->openMailbox(
            $this->mailbox,
            static fn(MailboxMessage $message) => $weak->get()?->onMessage($message),
            static fn(bool $mayHaveLostMessages) => $mayHaveLostMessages ? $weak->get()?->lookUpAll() : null,
        );
    }

    private function onMessage(MailboxMessage $message): void
    {
        foreach ($this->queues as $queue) {
            $queue->onMessage($message, \count($this->queues) > 1);
        }
    }

    private function lookUpAll(): void
    {
        foreach ($this->queues as $queue) {
            $queue->lookUpAll();
        }
    }
}
