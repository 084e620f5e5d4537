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

    public function wantsOutcome(): bool
    {
        return $this->items->wantsOutcome();
    }

    public function outcome(string $id, string $frame): void
    {
        $this->submission->finish();
        $this->items->outcome($id, $frame);
    }

    public function unknown(string $id): void
    {
        $this->submission->finish();
        $this->items->unknown($id);
    }

    public function refused(string $id, BrokerRefusedException $refused): void
    {
        $this->submission->finish();
        $this->items->refused($id, $refused);
    }

    public function items(string $id): void
    {
        $this->items->items($id);
    }

    public function report(string $id, string $frame): void
    {
        $this->items->report($id, $frame);
    }
}
