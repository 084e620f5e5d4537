<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\Session;

/**
 * Fibers that hold a connection of the pool. If such a fiber runs a statement on the pool, and not on its connection,
 * the statement must not share a session. On a shared session, an earlier statement may wait for a lock that the
 * fiber's transaction holds. Both statements would wait for ever, because a waiting fiber can't end its transaction.
 */
final class HoldingFibers
{
    public int $connectionCount = 0;

    private int $mainConnectionCount = 0;

    /** @var \WeakMap<\Fiber<mixed, mixed, mixed, mixed>, int> number of connections that each fiber holds */
    private \WeakMap $fibers;

    /** @var array<int, \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null> by session object id; null: {main} */
    private array $holders = [];

    public function __construct()
    {
        $this->fibers = new \WeakMap();
    }

    public function add(Session $session): void
    {
        ++$this->connectionCount;
        /** @var \Fiber<mixed, mixed, mixed, mixed>|null $fiber */
        $fiber = \Fiber::getCurrent();
        if ($fiber === null) {
            ++$this->mainConnectionCount;
        } else {
            $this->fibers[$fiber] = ($this->fibers[$fiber] ?? 0) + 1;
        }
        $this->holders[spl_object_id($session)] = $fiber === null ? null : \WeakReference::create($fiber);
    }

    /** Records that no fiber holds the session any more. Does nothing if no fiber holds it. */
    public function remove(Session $session): void
    {
        $id = spl_object_id($session);
        if (!\array_key_exists($id, $this->holders)) {
            return;
        }
        $holder = $this->holders[$id];
        unset($this->holders[$id]);
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

    /** Returns whether the current fiber holds a connection; outside of fibers, whether the main program does. */
    public function includesCurrent(): bool
    {
        $fiber = \Fiber::getCurrent();

        return $fiber === null ? $this->mainConnectionCount > 0 : isset($this->fibers[$fiber]);
    }
}
