<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Internal\Async\CurrentFunction;
use Spindle\Postgres\Internal\Session;

/**
 * Functions that hold a connection of the pool. A function is one call that the event loop runs in a fiber, or the main
 * program, see {@see CurrentFunction}. If a function that holds a connection runs a statement on the
 * pool, this statement must not share a session. On a shared session, an earlier statement may wait for a lock that the
 * function's transaction holds. This wait would never end: the function can't commit while it waits for its statement.
 */
final class HoldingFunctions
{
    public int $connectionCount = 0;

    /** @var \WeakMap<\stdClass, int> number of connections that each function holds, by {@see CurrentFunction} */
    private \WeakMap $counts;

    /** @var array<int, \WeakReference<\stdClass>> function that holds a session, by the object id of the session */
    private array $holders = [];

    public function __construct()
    {
        $this->counts = new \WeakMap();
    }

    public function add(Session $session): void
    {
        ++$this->connectionCount;
        $function = CurrentFunction::identity();
        $this->counts[$function] = ($this->counts[$function] ?? 0) + 1;
        $this->holders[spl_object_id($session)] = \WeakReference::create($function);
    }

    /** Records that no function holds the session any more. Does nothing if no function holds it. */
    public function remove(Session $session): void
    {
        $id = spl_object_id($session);
        $holder = $this->holders[$id] ?? null;
        if ($holder === null) {
            return;
        }
        unset($this->holders[$id]);
        --$this->connectionCount;
        $function = $holder->get();
        if ($function === null) {
            return;
        }
        $left = ($this->counts[$function] ?? 1) - 1;
        if ($left > 0) {
            $this->counts[$function] = $left;
        } else {
            unset($this->counts[$function]);
        }
    }

    /** @param array<int, mixed> $sessions any values by the object ids of sessions */
    public function currentHoldsAny(array $sessions): bool
    {
        $function = CurrentFunction::identity();
        $holders = array_intersect_key($this->holders, $sessions);

        return array_filter($holders, static fn(\WeakReference $one): bool => $one->get() === $function) !== [];
    }

    /** Returns whether the current function (outside of fibers: the main program) holds a connection. */
    public function includesCurrent(): bool
    {
        return isset($this->counts[CurrentFunction::identity()]);
    }
}
