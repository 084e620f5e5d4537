<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

/** Records a callback's fiber. In that fiber, a pool's close() throws, because it would wait for its own caller. */
final class CallbackFiber
{
    /** @var \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null */
    private ?\WeakReference $fiber = null;

    /** @param \Closure(): void $function called in the current fiber, which must not be {main} */
    public function run(\Closure $function): void
    {
        /** @var \Fiber<mixed, mixed, mixed, mixed> $fiber */
        $fiber = \Fiber::getCurrent();
        $this->fiber = \WeakReference::create($fiber);
        try {
            $function();
        } finally {
            $this->fiber = null;
        }
    }

    public function isCurrent(): bool
    {
        return $this->fiber !== null && $this->fiber->get() === \Fiber::getCurrent();
    }
}
