<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

/**
 * Fibers that hold a connection of the pool.
 *
 * A statement that such a fiber sends through the pool must not follow another on a session. The statement ahead may
 * wait for a lock that this fiber's own transaction holds, and then neither would ever end.
 */
final class HoldingFibers
{
    /** Connections that are held. */
    public int $count = 0;

    private int $main = 0;

    /** @var \WeakMap<\Fiber<mixed, mixed, mixed, mixed>, int> */
    private \WeakMap $fibers;

    public function __construct()
    {
        $this->fibers = new \WeakMap();
    }

    /**
     * Counts one more connection for the current fiber.
     *
     * @return \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null the fiber, for {@see remove()}; null for {main}
     */
    public function add(): ?\WeakReference
    {
        ++$this->count;
        /** @var \Fiber<mixed, mixed, mixed, mixed>|null $fiber */
        $fiber = \Fiber::getCurrent();
        if ($fiber === null) {
            ++$this->main;

            return null;
        }
        $this->fibers[$fiber] = ($this->fibers[$fiber] ?? 0) + 1;

        return \WeakReference::create($fiber);
    }

    /** @param \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null $holder */
    public function remove(?\WeakReference $holder): void
    {
        --$this->count;
        if ($holder === null) {
            --$this->main;

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

    public function holds(): bool
    {
        $fiber = \Fiber::getCurrent();

        return $fiber === null ? $this->main > 0 : isset($this->fibers[$fiber]);
    }
}
