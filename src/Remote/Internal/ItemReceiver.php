<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\JobLostException;
use Spindle\Worker\ExecutorClosedException;

/** Passes messages about a generator task to a {@see StoredItems} object, but does not keep that object in memory. */
final class ItemReceiver implements OutcomeReceiver
{
    /** @param \WeakReference<StoredItems> $stream weak, so that PHP can destroy the StoredItems, which ends the task */
    public function __construct(private readonly QueueClient $client, private readonly \WeakReference $stream)
    {
        $this->client->begin($this);
    }

    public function client(): QueueClient
    {
        return $this->client;
    }

    public function awaitsOutcome(): bool
    {
        return true;
    }

    public function wantsOutcome(): bool
    {
        return $this->stream->get() !== null;
    }

    public function isCancelled(): bool
    {
        return false;
    }

    public function onOutcome(string $id, string $frame): void
    {
        $this->stream->get()?->onOutcome($frame);
        $this->client->end($this);
    }

    public function onUnknown(string $id, ?JobCancelledException $cancelled = null): void
    {
        $this->fail($cancelled ?? JobLostException::unknown($id, $this->client->queue));
    }

    public function onRefused(string $id, BrokerRefusedException $refused): void
    {
        $this->fail($refused);
    }

    public function onItems(string $id): void
    {
        $this->stream->get()?->onItems();
    }

    public function close(): void {}

    public function kill(ExecutorClosedException $reason): void
    {
        $this->fail($reason);
    }

    public function fail(\Throwable $failure): void
    {
        $this->stream->get()?->fail($failure);
        $this->client->end($this);
    }
}
