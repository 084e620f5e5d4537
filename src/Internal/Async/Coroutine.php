<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Revolt\EventLoop;

/**
 * Runs steps, such as those of a generator, in one fiber. So the steps share fiber-local values. For example, a
 * PostgresPool that is being closed still accepts statements of a fiber that holds a connection. So if one step has
 * acquired a connection, later steps can run statements.
 */
final class Coroutine
{
    /** Resumes the fiber of the steps with the next step; null before the first step and after the last. */
    private ?\Closure $resume = null;

    /**
     * Runs a step soon, in a callback of the event loop. The previous step must have ended when this callback runs. A
     * running step may queue the next one only as its last action, and must then return true.
     *
     * @param \Closure(): bool $step returns whether further steps may follow in the same fiber
     */
    public function queue(\Closure $step): void
    {
        if ($this->resume === null) {
            EventLoop::queue(self::run(...), \WeakReference::create($this), $step);
        } else {
            EventLoop::queue($this->resume, $step);
        }
    }

    /**
     * Between two steps, the fiber does not reference the Coroutine. So PHP can destroy the Coroutine, with its fiber.
     *
     * @param \WeakReference<self> $coroutine
     * @param (\Closure(): bool)|null $step
     */
    private static function run(\WeakReference $coroutine, ?\Closure $step): void
    {
        /** @var \Fiber<mixed, mixed, mixed, mixed> $fiber */
        $fiber = \Fiber::getCurrent();
        $coroutine->get()?->setResume($fiber->resume(...));
        unset($fiber);
        try {
            while ($step !== null && $step()) {
                $step = null;
                /** @var \Closure(): bool $step */
                $step = \Fiber::suspend();
            }
        } finally {
            $coroutine->get()?->setResume(null);
        }
    }

    private function setResume(?\Closure $resume): void
    {
        $this->resume = $resume;
    }
}
