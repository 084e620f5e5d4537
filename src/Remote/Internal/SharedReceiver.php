<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\BrokerRefusedException;

/** Passes the messages about a job to two waiters. The first may be another shared receiver. */
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

    public function outcome(string $id, string $frame): void
    {
        $this->first->outcome($id, $frame);
        $this->second->outcome($id, $frame);
    }

    public function unknown(string $id): void
    {
        $this->first->unknown($id);
        $this->second->unknown($id);
    }

    public function refused(string $id, BrokerRefusedException $refused): void
    {
        $this->first->refused($id, $refused);
        $this->second->refused($id, $refused);
    }

    /** Notifies only the first waiter, because each item can be taken only once. */
    public function items(string $id): void
    {
        $this->first->items($id);
    }

    public function report(string $id, string $frame): void
    {
        $this->first->report($id, $frame);
    }
}
