<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

/** A queue of waiters, in order of arrival. Each operation takes constant amortized time. */
final class WaitingFibers
{
    public int $count = 0;

    /** @var array<int, WaitingFiber> by {@see WaitingFiber::$index} */
    private array $waiters = [];

    private int $head = 0;

    private int $tail = 0;

    public function add(WaitingFiber $waiter): void
    {
        $waiter->index = $this->tail;
        $this->waiters[$this->tail++] = $waiter;
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
