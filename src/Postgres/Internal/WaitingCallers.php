<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\Fibers;

/** A queue of callers that are suspended until they are woken, in order of arrival. */
final class WaitingCallers
{
    /** @var array<int, Suspension<null>> */
    private array $waiting = [];

    private int $last = 0;

    /**
     * @param \Closure(): void $passWakeOn called when the caller was woken, but an exception from the event loop
     *     interrupts it; wakes another caller, if that is necessary
     */
    public function wait(?Cancellation $cancellation, \Closure $passWakeOn): void
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
                $passWakeOn();
            }

            throw $interruption;
        } finally {
            if ($cancellation !== null) {
                $cancellation->unsubscribe((string) $subscription);
            }
        }
    }

    /** @return bool false when no caller is waiting */
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
