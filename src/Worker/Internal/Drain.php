<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\CannotWaitException;

/** What is open in a pool: while anything is the loop goes on, and when a closed pool has nothing more its workers stop. */
final class Drain
{
    /** @var array<int, self> those where something is open: who waits may be in a fiber to which nothing else leads */
    private static array $busy = [];

    /** The pool is no more, but for the tasks that it was given. */
    private bool $released = false;

    /** The pool takes no more tasks; its workers are told to stop; they have. */
    private bool $closed = false;
    private bool $stopping = false;
    private bool $over = false;

    /** The workers are to stop when nothing is open any more; and who waits for that. */
    private bool $draining = false;

    /** @var array<int, Suspension<null>> by id */
    private array $waiting = [];

    /** The loop goes on while this timer is referenced. */
    private readonly string $alive;

    public function __construct(
        private readonly Workers $workers,
        private readonly Sources $sources,
        private readonly Results $results,
        private readonly Overdue $overdue,
    ) {
        $this->alive = EventLoop::unreference(EventLoop::repeat(86_400, static fn() => null));
    }

    public function isClosed(): bool
    {
        return $this->closed;
    }

    /** Takes no more tasks, and returns when those that there are have their outcomes and the workers have stopped. */
    public function close(): void
    {
        $this->closed = true;
        $this->sources->close();
        if ($this->over) {
            return;
        }
        $this->draining = true;
        $this->keepLoop();
        $this->checkDrained();
        if (!$this->over) {
            $this->awaitEnd();
        }
    }

    /** Takes no more tasks, and holds itself until those that there are have their outcomes. */
    public function release(): void
    {
        $this->closed = true;
        $this->draining = true;
        $this->released = true;
        $this->keepLoop();
    }

    /** A task has its outcome, or a stream of items has begun or ended. */
    public function settled(): void
    {
        $this->keepLoop();
        $this->checkDrained();
    }

    /** The loop goes on while somebody may wait for something that comes from here. */
    public function keepLoop(): void
    {
        if ($this->over) {
            return;
        }
        if ($this->sources->areOpen() || $this->results->streams() > 0 || $this->draining) {
            EventLoop::reference($this->alive);
            self::$busy[spl_object_id($this)] = $this;
        } else {
            EventLoop::unreference($this->alive);
            unset(self::$busy[spl_object_id($this)]);
        }
    }

    /** Stops the workers when the pool is closed and nothing is open. */
    public function checkDrained(): void
    {
        if (!$this->draining || $this->stopping || $this->results->streams() > 0 || !$this->sources->areSettled()) {
            return;
        }
        $this->stopping = true;
        if ($this->released) {
            $this->workers->close(); // at once, for nobody may turn the loop from here on
            $this->end();

            return;
        }
        $this->workers->stopAll(function (): void {
            $this->workers->close();
            $this->end();
        });
    }

    /** All workers have ended. */
    public function end(): void
    {
        $this->closed = true;
        if ($this->over) {
            return;
        }
        $this->over = true;
        EventLoop::cancel($this->alive);
        $this->overdue->close();
        unset(self::$busy[spl_object_id($this)]);
        $waiting = $this->waiting;
        $this->waiting = [];
        foreach ($waiting as $suspension) {
            $suspension->resume();
        }
    }

    /** @throws CannotWaitException */
    private function awaitEnd(): void
    {
        $suspension = EventLoop::getSuspension();
        $id = spl_object_id($suspension);
        $this->waiting[$id] = $suspension;
        try {
            $suspension->suspend();
        } catch (\FiberError $blocked) {
            throw CannotWaitException::because($blocked);
        } finally {
            unset($this->waiting[$id]);
        }
    }
}
