<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\BrokerRefusedException;

/** Passes the messages about a job to two waiters. The first one can be a shared receiver itself. */
final class SharedReceiver implements OutcomeReceiver
{
    public function __construct(private readonly OutcomeReceiver $first, private readonly OutcomeReceiver $second) {}

    /** Returns a copy in which the waiter $old is replaced. */
    public function with(OutcomeReceiver $old, OutcomeReceiver $new): OutcomeReceiver
    {
        return new self(
            $this->first instanceof self
                ? $this->first->with($old, $new)
                : ($this->first === $old ? $new : $this->first),
            $this->second === $old ? $new : $this->second,
        );
    }

    public function wantsOutcome(): bool
    {
        return $this->first->wantsOutcome() || $this->second->wantsOutcome();
    }

    public function onOutcome(string $id, string $frame): void
    {
        $this->first->onOutcome($id, $frame);
        $this->second->onOutcome($id, $frame);
    }

    public function onUnknown(string $id): void
    {
        $this->first->onUnknown($id);
        $this->second->onUnknown($id);
    }

    public function onRefused(string $id, BrokerRefusedException $refused): void
    {
        $this->first->onRefused($id, $refused);
        $this->second->onRefused($id, $refused);
    }

    /** Notifies only the first waiter, because each item can be taken only once. */
    public function onItems(string $id): void
    {
        $this->first->onItems($id);
    }

    /** Notifies only the first waiter, so that this process receives each report once. */
    public function onReport(string $id, string $frame): void
    {
        $this->first->onReport($id, $frame);
    }
}
