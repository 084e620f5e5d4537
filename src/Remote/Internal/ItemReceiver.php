<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\JobLostException;

/** Passes messages to a {@see StoredItems} object as long as something else references that object. */
final class ItemReceiver implements OutcomeReceiver
{
    /** @param \WeakReference<StoredItems> $stream */
    public function __construct(private readonly QueueClient $client, private readonly \WeakReference $stream) {}

    public function wantsOutcome(): bool
    {
        return $this->stream->get() !== null;
    }

    public function onOutcome(string $id, string $frame): void
    {
        $this->stream->get()?->onOutcome($frame);
    }

    public function onUnknown(string $id): void
    {
        $this->stream->get()?->fail(JobLostException::unknown($id, $this->client->queue));
    }

    public function onRefused(string $id, BrokerRefusedException $refused): void
    {
        $this->stream->get()?->fail($refused);
    }

    public function onItems(string $id): void
    {
        $this->stream->get()?->onItems();
    }

    public function onReport(string $id, string $frame): void
    {
        $this->client->report($id, $frame);
    }
}
