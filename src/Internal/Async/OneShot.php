<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Spindle\Internal\CannotWaitException;

/**
 * A result or failure that one fiber waits for. Unlike Amp's Future, this class does not report an unread failure.
 *
 * @template T
 */
final class OneShot
{
    /** Condition on which {@see await()} waits; null as long as no call had to wait. */
    private ?Condition $completed = null;

    public bool $isCompleted = false;

    private ?\Throwable $failure = null;

    /** @var T|null */
    private mixed $value = null;

    /**
     * Waits for the result or the failure. Returns the result, or throws the failure.
     *
     * @return T
     *
     * @throws CannotWaitException when PHP can't suspend the caller; in this case, the event loop has not run
     */
    public function await(): mixed
    {
        if (!$this->isCompleted) {
            $this->completed = new Condition();
            $this->completed->wait();
        }
        if ($this->failure !== null) {
            throw $this->failure;
        }

        /** @var T */
        return $this->value;
    }

    /** @param T $value */
    public function complete(mixed $value): void
    {
        $this->value = $value;
        $this->isCompleted = true;
        $this->completed?->notify();
    }

    public function fail(\Throwable $failure): void
    {
        $this->failure = $failure;
        $this->isCompleted = true;
        $this->completed?->notify();
    }
}
