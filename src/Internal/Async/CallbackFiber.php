<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

/** Records the fiber that runs a function of the application, so that close() can refuse to wait for its own fiber. */
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

    /** @param string $caller the function of the application that calls close() */
    public static function refusal(string $caller): \LogicException
    {
        return new \LogicException(
            "{$caller} has called close(), so close() would wait for itself. Call close() in another fiber, or kill()",
        );
    }

    public function isCurrent(): bool
    {
        return $this->fiber !== null && $this->fiber->get() === \Fiber::getCurrent();
    }
}
