<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;

/**
 * Those who wait for a session of a pool. They are served in the order of their coming, but that queries which share one may go ahead of
 * who waits to have one alone, onto one that is shared already.
 */
final class Queue
{
    /** @var array<int, Waiter> in the order of their coming; only read by others */
    public array $waiting = [];

    /** Of those who wait, who would share; only read by others. */
    public int $sharers = 0;

    private int $ids = 0;

    /**
     * @param \Closure(): void       $left     called when somebody went without having got anything
     * @param \Closure(Member): void $declined called with what was given to somebody who had gone by then; he counts no more
     */
    public function __construct(private readonly Counts $counts, private readonly \Closure $left, private readonly \Closure $declined) {}

    /** How many wait to have a session alone. */
    public function alone(): int
    {
        return \count($this->waiting) - $this->sharers;
    }

    /** Takes a place at the end, for {@see wait()}. */
    public function enter(bool $alone): int
    {
        $this->waiting[++$this->ids] = new Waiter(EventLoop::getSuspension(), $alone, hrtime(true));
        $this->sharers += $alone ? 0 : 1;

        return $this->ids;
    }

    /**
     * Suspends until there is something for who has that place, in vain for so many seconds at most. A member that is to be had alone is so
     * by then; one that is shared counts the query already.
     *
     * @param \Closure(): \Throwable $late tells what to throw then
     */
    public function wait(int $id, float $seconds, ?Cancellation $cancellation, \Closure $late): Member
    {
        $waiter = $this->waiting[$id];
        $leave = function (\Throwable $reason) use ($id, $waiter): void {
            if (isset($this->waiting[$id])) {
                $this->forget($id);
                $waiter->suspension->throw($reason);
                ($this->left)();
            }
        };
        if ($seconds < 1e9) {
            $waiter->timer = EventLoop::delay(max(0.0, $seconds), function () use ($leave, $late): void {
                ++$this->counts->timedOut;
                $leave($late());
            });
        }
        $subscription = $cancellation?->subscribe(static fn(CancelledException $reason) => $leave($reason));
        try {
            return $waiter->suspension->suspend();
        } catch (\Throwable $interruption) {
            if (isset($this->waiting[$id])) {
                $this->forget($id);
                ($this->left)();
            } elseif ($waiter->given !== null) {
                // It came when {main} had been interrupted by an exception out of the loop.
                $waiter->alone ? $waiter->given->alone = false : --$waiter->given->queries;
                ($this->declined)($waiter->given);
            }
            throw $interruption;
        } finally {
            if ($cancellation !== null) {
                $cancellation->unsubscribe((string) $subscription);
            }
        }
    }

    /** Gives the member to whom it is of use: one alone if he is the first, or all who would share it, as many as may. */
    public function serve(Member $member): void
    {
        if ($member->isFree()) {
            $member->reserved = false;
        }
        foreach ($this->waiting as $id => $waiter) {
            if ($member->alone || $member->queries > 0 && ($member->reserved || $member->queries >= Member::MOST_SHARING || $this->sharers === 0)) {
                break;
            }
            if ($waiter->alone && $member->queries > 0) {
                continue;
            }
            $this->forget($id);
            $this->counts->waited((hrtime(true) - $waiter->since) / 1e9);
            $member->alone = $waiter->alone;
            $member->queries += $waiter->alone ? 0 : 1;
            $waiter->given = $member;
            $waiter->suspension->resume($member);
        }
    }

    /** Nobody who waits now gets anything. */
    public function refuse(\Throwable $reason): void
    {
        foreach ($this->waiting as $id => $waiter) {
            $this->forget($id);
            $waiter->suspension->throw($reason);
        }
        ($this->left)();
    }

    private function forget(int $id): void
    {
        $waiter = $this->waiting[$id];
        unset($this->waiting[$id]);
        $this->sharers -= $waiter->alone ? 0 : 1;
        if ($waiter->timer !== '') {
            EventLoop::cancel($waiter->timer);
        }
    }
}
