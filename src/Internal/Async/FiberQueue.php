<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\CannotWaitException;

/** A queue of suspended fibers. The fiber that has waited longest is woken first. */
final class FiberQueue
{
    /**
     * Maximum number of fibers that are resumed in one turn of the event loop. The loop resumes fibers in nested
     * calls. So the trace of an exception in a fiber also has the frames of all fibers resumed earlier in the turn. The
     * limit keeps the memory for these frames small.
     */
    private const MAX_RESUMED_AT_ONCE = 64;

    /** @var array<int, Condition> by the order of arrival */
    private array $waiting = [];

    private int $firstId = 1;
    private int $lastId = 0;

    /**
     * @param (\Closure(): mixed)|null $passWakeOn called when the fiber was woken, but an exception from the event loop
     *     ends the wait. The closure must wake another fiber if there is work for one
     * @param object|null $owner kept in memory while the fiber waits; {@see Condition::wait()} explains why
     * @param int|null $place the result of an earlier wait, to wait again at the same place
     *
     * @return int the place of the fiber in the order of arrival
     *
     * @throws CancelledException|CannotWaitException
     */
    public function wait(
        ?Cancellation $cancellation = null,
        ?\Closure $passWakeOn = null,
        ?object $owner = null,
        ?int $place = null,
    ): int {
        $id = $place ?? ++$this->lastId;
        $this->firstId = min($this->firstId, $id);
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

        return $id;
    }

    /**
     * Waits in the close() of an object until this queue is woken. Kills the object if the wait is cancelled.
     *
     * @param \Closure(): void $kill called when the wait is cancelled, before CancelledException is thrown
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
        while ($this->firstId <= $this->lastId) {
            $condition = $this->waiting[$this->firstId] ?? null;
            unset($this->waiting[$this->firstId++]);
            if ($condition?->isAwaited() === true) { // false if the wait was cancelled and the fiber has not run since
                $condition->notify();

                return true;
            }
        }

        return false;
    }

    /** Wakes all waiting fibers, 64 per turn of the loop. A fiber that waits later may be woken before some of them. */
    public function wakeAll(): void
    {
        if ($this->waiting !== []) {
            $slices = array_chunk($this->waiting, self::MAX_RESUMED_AT_ONCE);
            $this->waiting = [];
            $this->firstId = $this->lastId + 1;
            self::resumeSlices($slices, static fn(Condition $condition) => $condition->notify());
        }
    }

    /** Makes {@see wait()} throw in all waiting fibers. Does not call `$passWakeOn`: no fiber was woken. */
    public function failAll(\Throwable $reason): void
    {
        $slices = array_chunk($this->waiting, self::MAX_RESUMED_AT_ONCE);
        self::resumeSlices($slices, static fn(Condition $condition) => $condition->fail($reason));
    }

    /**
     * @param list<list<Condition>> $slices
     * @param \Closure(Condition): void $resume
     */
    private static function resumeSlices(array $slices, \Closure $resume): void
    {
        foreach (array_shift($slices) ?? [] as $condition) {
            $resume($condition);
        }
        if ($slices !== []) {
            EventLoop::defer(static fn() => self::resumeSlices($slices, $resume));
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
