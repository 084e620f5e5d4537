<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Internal\CannotWaitException;

/** A queue of fibers that are suspended until they are woken, in order of arrival. */
final class FiberQueue
{
    /** @var array<int, Condition> */
    private array $waiting = [];

    private int $lastId = 0;

    /**
     * @param (\Closure(): mixed)|null $passWakeOn called when a fiber was woken, but an exception from the event loop
     *     then interrupts it; must wake another fiber if there is something for a fiber to do
     * @param object|null $owner kept in memory while the fiber waits; {@see Condition::wait()} explains why
     *
     * @throws CancelledException|CannotWaitException
     */
    public function wait(
        ?Cancellation $cancellation = null,
        ?\Closure $passWakeOn = null,
        ?object $owner = null,
    ): void {
        $id = ++$this->lastId;
        $condition = $this->waiting[$id] = new Condition();
        try {
            $condition->wait($cancellation, $owner);
        } catch (\Throwable $interruption) {
            $wasWoken = !$this->remove($id);
            if ($wasWoken && $passWakeOn !== null && !$interruption instanceof CancelledException) {
                $passWakeOn();
            }

            throw $interruption;
        }
    }

    /**
     * Waits until an object that is being closed has ended, and kills the object if the wait is cancelled.
     *
     * @param \Closure(): void $kill  called when the wait is cancelled, before CancelledException is thrown
     * @param object|null      $owner kept in memory while the fiber waits
     *
     * @throws CancelledException|CannotWaitException
     */
    public function waitOrKill(?Cancellation $cancellation, \Closure $kill, ?object $owner = null): void
    {
        try {
            $this->wait($cancellation, owner: $owner);
        } catch (CancelledException $cancelled) {
            $kill();

            throw $cancelled;
        }
    }

    /** @return bool false when no fiber is waiting */
    public function wakeFirst(): bool
    {
        foreach ($this->waiting as $id => $condition) {
            unset($this->waiting[$id]);
            if ($condition->isAwaited()) { // false after a cancellation, until the fiber resumes and leaves the queue
                $condition->notify();

                return true;
            }
        }

        return false;
    }

    public function wakeAll(): void
    {
        while ($this->wakeFirst()) {
            continue;
        }
    }

    /** Makes {@see wait()} throw in all waiting fibers. */
    public function failAll(\Throwable $reason): void
    {
        $waiting = $this->waiting;
        $this->waiting = [];
        foreach ($waiting as $condition) {
            $condition->fail($reason);
        }
    }

    /** @return bool whether the fiber was still in the queue */
    private function remove(int $id): bool
    {
        $isWaiting = isset($this->waiting[$id]);
        unset($this->waiting[$id]);

        return $isWaiting;
    }
}
