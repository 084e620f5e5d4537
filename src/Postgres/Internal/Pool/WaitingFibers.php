<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

/**
 * A queue of waiters, ordered by {@see WaitingFiber::$since}. Each operation takes constant amortized time, with one
 * exception. A fiber may ping a session before it waits, and other fibers may begin to wait during the ping. Then
 * {@see add()} moves each of these waiters, to insert the fiber before them.
 */
final class WaitingFibers
{
    public int $count = 0;

    /** @var array<int, WaitingFiber> by {@see WaitingFiber::$index} */
    private array $waiters = [];

    private int $head = 0;

    private int $tail = 0;

    public function add(WaitingFiber $waiter): void
    {
        while ($this->tail > $this->head && !isset($this->waiters[$this->tail - 1])) {
            --$this->tail;
        }
        $index = $this->tail++;
        for (; $index > $this->head; --$index) {
            $before = $this->waiters[$index - 1] ?? null;
            if ($before !== null && $before->since <= $waiter->since) {
                break;
            }
            unset($this->waiters[$index]);
            if ($before !== null) {
                $before->index = $index;
                $this->waiters[$index] = $before;
            }
        }
        $waiter->index = $index;
        $this->waiters[$index] = $waiter;
        ++$this->count;
    }

    public function first(): ?WaitingFiber
    {
        for (; $this->count > 0; ++$this->head) {
            if (isset($this->waiters[$this->head])) {
                return $this->waiters[$this->head];
            }
        }

        return null;
    }

    /** @return bool whether the waiter was in the list */
    public function remove(WaitingFiber $waiter): bool
    {
        if (($this->waiters[$waiter->index] ?? null) !== $waiter) {
            return false;
        }
        unset($this->waiters[$waiter->index]);
        --$this->count;

        return true;
    }
}
