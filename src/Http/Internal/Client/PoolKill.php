<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;

/**
 * The cancellation of all attempts to connect of a pool. Amp's DeferredCancellation is unsuitable, because its
 * destructor cancels. At the end of a script, PHP may call that destructor before the last requests are sent.
 */
final class PoolKill implements Cancellation
{
    /** @var array<array-key, \Closure(CancelledException): void> by id */
    private array $callbacks = [];

    private int $lastId = 0;
    private ?CancelledException $exception = null;

    public function request(): void
    {
        $this->exception ??= new CancelledException();
        $callbacks = $this->callbacks;
        $this->callbacks = [];
        foreach ($callbacks as $callback) {
            EventLoop::queue($callback, $this->exception);
        }
    }

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
}
