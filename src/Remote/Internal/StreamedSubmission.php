<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\BrokerRefusedException;

/** The waiter of a submitted generator task. The task can be cancelled until its outcome arrives. */
final class StreamedSubmission implements OutcomeReceiver
{
    public function __construct(
        private readonly RemoteSubmission $submission,
        private readonly OutcomeReceiver $items,
    ) {}

    public function without(object $owner): ?self
    {
        return $this->submission->without($owner) === null ? null : $this;
    }

    public function wantsOutcome(): bool
    {
        return $this->items->wantsOutcome();
    }

    public function onOutcome(string $id, string $frame): void
    {
        $this->submission->finish();
        $this->items->onOutcome($id, $frame);
    }

    public function onUnknown(string $id): void
    {
        $this->submission->finish();
        $this->items->onUnknown($id);
    }

    public function onRefused(string $id, BrokerRefusedException $refused): void
    {
        $this->submission->finish();
        $this->items->onRefused($id, $refused);
    }

    public function onItems(string $id): void
    {
        $this->items->onItems($id);
    }

    public function onReport(string $id, string $frame): void
    {
        $this->items->onReport($id, $frame);
    }
}
