<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\BrokerRefusedException;

/** Passes the messages about a job to several waiters. */
final class SharedReceiver implements OutcomeReceiver
{
    /** @param non-empty-list<OutcomeReceiver> $receivers */
    private function __construct(private readonly array $receivers) {}

    /** Returns a receiver for both of the waiters. The first one can be a shared receiver itself. */
    public static function of(OutcomeReceiver $first, OutcomeReceiver $second): self
    {
        return new self([...($first instanceof self ? $first->receivers : [$first]), $second]);
    }

    /** Returns a copy in which the waiter $old is replaced. */
    public function with(OutcomeReceiver $old, OutcomeReceiver $new): self
    {
        return new self(array_map(
            static fn(OutcomeReceiver $receiver): OutcomeReceiver => $receiver === $old ? $new : $receiver,
            $this->receivers,
        ));
    }

    public function without(object $owner): ?self
    {
        $others = array_values(array_filter(
            $this->receivers,
            static fn(OutcomeReceiver $receiver): bool => $receiver->without($owner) !== null,
        ));

        return match (\count($others)) {
            0 => null,
            \count($this->receivers) => $this,
            default => new self($others),
        };
    }

    public function wantsOutcome(): bool
    {
        foreach ($this->receivers as $receiver) {
            if ($receiver->wantsOutcome()) {
                return true;
            }
        }

        return false;
    }

    public function onOutcome(string $id, string $frame): void
    {
        foreach ($this->receivers as $receiver) {
            $receiver->onOutcome($id, $frame);
        }
    }

    public function onUnknown(string $id): void
    {
        foreach ($this->receivers as $receiver) {
            $receiver->onUnknown($id);
        }
    }

    public function onRefused(string $id, BrokerRefusedException $refused): void
    {
        foreach ($this->receivers as $receiver) {
            $receiver->onRefused($id, $refused);
        }
    }

    /** Notifies only the first waiter, because each item can be taken only once. */
    public function onItems(string $id): void
    {
        $this->receivers[0]->onItems($id);
    }

    /** Notifies only the first waiter, so that this process receives each report once. */
    public function onReport(string $id, string $frame): void
    {
        $this->receivers[0]->onReport($id, $frame);
    }
}
