<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;

/**
 * A cancellation that is requested after a number of seconds. All timeouts share one exception without a trace, because
 * one trace for each of many timeouts would need much memory: {@see FiberTrace}.
 */
final class Timeout implements Cancellation
{
    private static ?CancelledException $exception = null;

    /** @var array<array-key, \Closure(CancelledException): void> by id */
    private array $callbacks = [];

    private int $lastId = 0;
    private bool $isRequested = false;
    private readonly string $timer;

    public function __construct(float $seconds)
    {
        $this->timer = WeakTimer::after($seconds, $this, static fn(self $timeout) => $timeout->request());
    }

    public function __destruct()
    {
        EventLoop::cancel($this->timer);
    }

    public function subscribe(\Closure $callback): string
    {
        $id = (string) ++$this->lastId;
        if ($this->isRequested) {
            EventLoop::queue($callback, self::exception());
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
        return $this->isRequested;
    }

    public function throwIfRequested(): void
    {
        if ($this->isRequested) {
            throw self::exception();
        }
    }

    private function request(): void
    {
        $this->isRequested = true;
        $callbacks = $this->callbacks;
        $this->callbacks = [];
        foreach ($callbacks as $callback) {
            EventLoop::queue($callback, self::exception());
        }
    }

    private static function exception(): CancelledException
    {
        if (self::$exception === null) {
            self::$exception = new CancelledException();
            FiberTrace::remove(self::$exception);
        }

        return self::$exception;
    }
}
