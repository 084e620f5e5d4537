<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Amp\CancelledException;
use Revolt\EventLoop;

/**
 * Implements Cancellation. The class that uses this trait calls {@see requestWith()} to request the cancellation. Amp's
 * DeferredCancellation also requests the cancellation when PHP destroys it. An object with this trait does not.
 *
 * @phpstan-require-implements \Amp\Cancellation
 */
trait CancellationCallbacks
{
    /** @var array<array-key, \Closure(CancelledException): void> by id */
    private array $callbacks = [];

    private int $lastId = 0;

    private ?CancelledException $exception = null;

    public function subscribe(\Closure $callback): string
    {
        $id = (string) ++$this->lastId;
        if ($this->exception !== null) {
            EventLoop::queue($callback, $this->exception);
        } else {
            $this->callbacks[$id] = $callback;
        }

        return $id;
    }

    public function unsubscribe(string $id): void
    {
        unset($this->callbacks[$id]);
    }

    public function isRequested(): bool
    {
        return $this->exception !== null;
    }

    public function throwIfRequested(): void
    {
        if ($this->exception !== null) {
            throw $this->exception;
        }
    }

    private function requestWith(CancelledException $exception): void
    {
        $this->exception = $exception;
        $callbacks = $this->callbacks;
        $this->callbacks = [];
        foreach ($callbacks as $callback) {
            EventLoop::queue($callback, $exception);
        }
    }
}
