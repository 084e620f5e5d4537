<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Revolt\EventLoop;

/**
 * Runs the steps of one activity in the same fiber, such as the steps of a generator. So the generator keeps its
 * fiber-local values, and the connections that it holds belong to its fiber.
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
     * Between two steps, the fiber does not reference its owner. So PHP destroys the fiber as soon as the owner ends.
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
