<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\Fibers;

/** Fibers that wait for the same thing, in the order of their arrival. */
final class WaitingCallers
{
    /** @var array<int, Suspension<null>> */
    private array $waiting = [];

    private int $last = 0;

    /**
     * Suspends until it is the caller's turn.
     *
     * @param \Closure(): void $decline called when the caller was interrupted by an exception out of the loop
     */
    public function wait(?Cancellation $cancellation, \Closure $decline): void
    {
        $id = ++$this->last;
        $suspension = $this->waiting[$id] = EventLoop::getSuspension();
        $subscription = $cancellation?->subscribe(function (CancelledException $reason) use ($id, $suspension): void {
            if (isset($this->waiting[$id])) {
                unset($this->waiting[$id]);
                $suspension->throw($reason);
            }
        });
        try {
            Fibers::suspend($suspension);
        } catch (\Throwable $interruption) {
            if (isset($this->waiting[$id])) {
                unset($this->waiting[$id]);
            } elseif (!$interruption instanceof CancelledException) {
                $decline();
            }

            throw $interruption;
        } finally {
            if ($cancellation !== null) {
                $cancellation->unsubscribe((string) $subscription);
            }
        }
    }

    /** @return bool false when no fiber waits */
    public function wakeFirst(): bool
    {
        $id = array_key_first($this->waiting);
        if ($id === null) {
            return false;
        }
        $suspension = $this->waiting[$id];
        unset($this->waiting[$id]);
        $suspension->resume();

        return true;
    }

    public function wakeAll(): void
    {
        while ($this->wakeFirst()) {
            continue;
        }
    }
}
