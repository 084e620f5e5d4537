<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Revolt\EventLoop;

/**
 * Runs steps, such as those of a generator, in one fiber. So the steps share fiber-local values, and a closing pool
 * accepts statements of later steps: the pool knows the fiber that holds a session.
 */
final class Coroutine
{
    /** Resumes the fiber of the steps with the next step; null before the first step and after the last. */
    private ?\Closure $resume = null;

    /**
     * Runs a step soon, in a callback of the event loop. Must not be called before the previous step ends.
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
     * Between two steps, the fiber does not reference this object. So PHP destroys the fiber together with this object.
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
