<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\DeferredFuture;
use GuzzleHttp\Promise\CancellationException;
use GuzzleHttp\Promise\Create;
use GuzzleHttp\Promise\PromiseInterface;
use GuzzleHttp\Promise\Utils;
use Revolt\EventLoop;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\CannotWaitException;

use function Amp\async;
use function Amp\Future\await;

/**
 * A promise for Guzzle whose callbacks may suspend, and for which several fibers can wait. `then()` returns promises of
 * this class, too. Guzzle's own Promise does not support suspended callbacks: its wait() runs Guzzle's task queue once.
 * After that, wait() rejects the promise if it is still pending.
 */
final class GuzzlePromise implements PromiseInterface
{
    /** @var self::FULFILLED|self::REJECTED|self::PENDING */
    private string $state = self::PENDING;

    private mixed $result = null;

    /** @var list<\Closure(): void> */
    private array $callbacks = [];

    private bool $isAwaited = false;

    private bool $hasRunCallbacks = false;

    /** @var DeferredFuture<null>|null created by the first wait */
    private ?DeferredFuture $finished = null;

    /**
     * @param (\Closure(): void)|null $onCancel
     * @param PromiseInterface|null $source the promise that settles this promise: first the one whose `then()` created
     *     this promise; later the one that the callback has returned
     */
    public function __construct(private ?\Closure $onCancel, private ?PromiseInterface $source = null) {}

    public function then(?callable $onFulfilled = null, ?callable $onRejected = null): PromiseInterface
    {
        $next = new self(null, $this);
        $callback = function () use ($next, $onFulfilled, $onRejected): void {
            $callback = $this->state === self::FULFILLED ? $onFulfilled : $onRejected;
            $next->settleWith($callback, $this->state, $this->result);
        };
        if ($this->state === self::PENDING) {
            $this->callbacks[] = $callback;
        } else {
            Utils::queue()->add($callback);
            self::scheduleQueue();
        }

        return $next;
    }

    public function otherwise(callable $onRejected): PromiseInterface
    {
        return $this->then(null, $onRejected);
    }

    public function getState(): string
    {
        return $this->state;
    }

    /** Settles the promise. Waits until its callbacks have returned, unless `$value` is a promise. */
    public function resolve($value = null): void
    {
        $this->ensurePending();
        $this->follow(self::FULFILLED, $value);
    }

    /** Rejects the promise, and waits until its callbacks have returned. */
    public function reject($reason): void
    {
        $this->ensurePending();
        $this->follow(self::REJECTED, $reason);
    }

    /** Rejects the promise, and cancels its request or source. The callbacks run in another fiber. */
    public function cancel(): void
    {
        if ($this->state !== self::PENDING) {
            return;
        }
        [$onCancel, $source] = [$this->onCancel, $this->source];
        $this->settle(self::REJECTED, new CancellationException('Promise has been cancelled'));
        $onCancel === null ? $source?->cancel() : $onCancel();
        async($this->runCallbacks(...));
    }

    /**
     * If `$unwrap` is false, waits until the callbacks have returned, even if the promise is already settled. Guzzle's
     * own promises call `wait(false)` if they depend on this promise. Before `wait(false)` returns, a callback of this
     * promise must have settled the dependent promise.
     *
     * @throws CannotWaitException when PHP can't suspend the caller
     */
    public function wait(bool $unwrap = true): mixed
    {
        if ($this->state === self::PENDING || !$unwrap && !$this->hasRunCallbacks) {
            FiberSwitch::ensurePossibleAfterBegin();
            $this->markAwaited();
            $this->finished ??= new DeferredFuture();
            FiberSwitch::await($this->finished->getFuture());
        }

        return match (true) {
            !$unwrap => null,
            $this->state === self::FULFILLED => $this->result,
            default => throw Create::exceptionFor($this->result),
        };
    }

    private function markAwaited(): void
    {
        if (!$this->isAwaited) {
            $this->isAwaited = true;
            $this->awaitSource();
        }
    }

    /** If the source is no GuzzlePromise, calls its wait() in a new fiber. Some promises settle only in wait(). */
    private function awaitSource(): void
    {
        if ($this->source instanceof self) {
            $this->source->markAwaited();
        } elseif ($this->source !== null) {
            async($this->source->wait(...), false)->ignore();
        }
    }

    /** @param self::FULFILLED|self::REJECTED|self::PENDING $state */
    private function settleWith(?callable $callback, string $state, mixed $result): void
    {
        if ($this->state !== self::PENDING) {
            return;
        }
        if ($callback !== null) {
            try {
                [$state, $result] = [self::FULFILLED, $callback($result)];
            } catch (\Throwable $thrown) {
                [$state, $result] = [self::REJECTED, $thrown];
            }
        }
        $this->follow($state, $result);
    }

    /**
     * Settles this promise with `$result`. But if `$state` is FULFILLED and `$result` is a promise, this promise later
     * gets the outcome of that promise.
     *
     * @param self::FULFILLED|self::REJECTED|self::PENDING $state
     */
    private function follow(string $state, mixed $result): void
    {
        if ($this->state !== self::PENDING) {
            return; // cancelled during the callback
        }
        if ($result === $this) {
            [$state, $result] = [self::REJECTED, new \LogicException('A promise cannot be its own value')];
        }
        if ($state === self::REJECTED || !\is_object($result) || !method_exists($result, 'then')) {
            $this->settle($state, $result);
            $this->runCallbacks();
        } else {
            $this->source = Create::promiseFor($result);
            $this->source->then(
                fn(mixed $value) => $this->follow(self::FULFILLED, $value),
                fn(mixed $reason) => $this->follow(self::REJECTED, $reason),
            );
            if ($this->isAwaited) {
                $this->awaitSource();
            }
        }
        self::scheduleQueue();
    }

    /** @param self::FULFILLED|self::REJECTED|self::PENDING $state */
    private function settle(string $state, mixed $result): void
    {
        [$this->state, $this->result, $this->onCancel, $this->source] = [$state, $result, null, null];
    }

    private function runCallbacks(): void
    {
        [$callbacks, $this->callbacks] = [$this->callbacks, []];
        if (\count($callbacks) === 1) {
            $callbacks[0]();
        } elseif ($callbacks !== []) {
            await(array_map(async(...), $callbacks)); // concurrently: a callback may wait for the outcome of another
        }
        $this->hasRunCallbacks = true;
        $this->finished?->complete();
    }

    private function ensurePending(): void
    {
        if ($this->state !== self::PENDING) {
            throw new \LogicException("The promise is already {$this->state}.");
        }
    }

    /**
     * Runs Guzzle's task queue in the next turn of the event loop. This queue has the callbacks of Guzzle's promises.
     * A fiber in Guzzle's Promise::wait() resumes before that turn, and runs the queue itself. So a callback that
     * suspends also suspends this wait(). If the queue ran in another fiber, wait() would not be suspended, and would
     * reject the promise before the callback settles the promise.
     */
    private static function scheduleQueue(): void
    {
        $queue = Utils::queue();
        if (!$queue->isEmpty()) {
            EventLoop::defer(static function () use ($queue): void {
                try {
                    $queue->run();
                } catch (\Throwable) {
                    self::scheduleQueue(); // A promise was settled twice. The first outcome counts.
                }
            });
        }
    }
}
