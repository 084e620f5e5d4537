<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

/**
 * Fibers that hold a connection of the pool. A statement that such a fiber sends through the pool itself must not share
 * a session. An earlier statement of that session may wait for a lock that the fiber's own transaction holds. Then both
 * statements would wait for ever, because the fiber can't end its transaction while it waits.
 */
final class HoldingFibers
{
    public int $connectionCount = 0;

    private int $mainConnectionCount = 0;

    /** @var \WeakMap<\Fiber<mixed, mixed, mixed, mixed>, int> */
    private \WeakMap $fibers;

    public function __construct()
    {
        $this->fibers = new \WeakMap();
    }

    /**
     * @return \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null the fiber, for {@see remove()}; null for {main}
     */
    public function add(): ?\WeakReference
    {
        ++$this->connectionCount;
        /** @var \Fiber<mixed, mixed, mixed, mixed>|null $fiber */
        $fiber = \Fiber::getCurrent();
        if ($fiber === null) {
            ++$this->mainConnectionCount;

            return null;
        }
        $this->fibers[$fiber] = ($this->fibers[$fiber] ?? 0) + 1;

        return \WeakReference::create($fiber);
    }

    /** @param \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null $holder */
    public function remove(?\WeakReference $holder): void
    {
        --$this->connectionCount;
        if ($holder === null) {
            --$this->mainConnectionCount;

            return;
        }
        $fiber = $holder->get();
        if ($fiber === null) {
            return;
        }
        $left = ($this->fibers[$fiber] ?? 1) - 1;
        if ($left > 0) {
            $this->fibers[$fiber] = $left;
        } else {
            unset($this->fibers[$fiber]);
        }
    }

    /** Whether the current fiber holds a connection; outside of fibers, whether {main} does. */
    public function includesCurrent(): bool
    {
        $fiber = \Fiber::getCurrent();

        return $fiber === null ? $this->mainConnectionCount > 0 : isset($this->fibers[$fiber]);
    }
}
