<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\JobLostException;

/** Passes letters to an {@see ItemStream} as long as it is referenced. */
final class ItemReceiver implements OutcomeReceiver
{
    /** @param \WeakReference<ItemStream> $stream */
    public function __construct(private readonly JobFactory $sender, private readonly \WeakReference $stream) {}

    public function wantsOutcome(): bool
    {
        return $this->stream->get() !== null;
    }

    public function outcome(string $id, string $frame): void
    {
        $this->stream->get()?->ended($frame);
    }

    public function unknown(string $id): void
    {
        $this->stream->get()?->fail(JobLostException::unknown($id, $this->sender->queue));
    }

    public function refused(string $id, BrokerRefusedException $refused): void
    {
        $this->stream->get()?->fail($refused);
    }

    public function items(string $id): void
    {
        $this->stream->get()?->more();
    }

    public function report(string $id, string $frame): void
    {
        $this->sender->report($id, $frame);
    }
}
