<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\BrokerRefusedException;

/** Several waiters of the same job. */
final class SharedReceiver implements OutcomeReceiver
{
    public function __construct(private readonly OutcomeReceiver $first, private readonly OutcomeReceiver $second) {}

    /** Returns a copy in which one waiter is replaced. */
    public function with(OutcomeReceiver $before, OutcomeReceiver $after): OutcomeReceiver
    {
        return new self(
            $this->first instanceof self
                ? $this->first->with($before, $after)
                : ($this->first === $before ? $after : $this->first),
            $this->second === $before ? $after : $this->second,
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

    /** Notifies only the first waiter, because only one reader can have the items. */
    public function items(string $id): void
    {
        $this->first->items($id);
    }

    public function report(string $id, string $frame): void
    {
        $this->first->report($id, $frame);
    }
}
