<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Amp\Cancellation;

/** Gives the running task its attempt number, id and cancellation. Sends reports of the task to the caller. */
final class TaskContext
{
    private static ?self $current = null;

    /** @var \WeakMap<\Fiber<mixed, mixed, mixed, mixed>, self>|null contexts of tasks of an {@see InlineExecutor} */
    private static ?\WeakMap $ofFibers = null;

    /**
     * @internal
     *
     * @param \Closure(): Cancellation $cancellation
     * @param \Closure(mixed): void    $report
     */
    public function __construct(
        /** Number of this attempt. The first attempt has number 1. */
        public readonly int $attempt,
        private readonly \Closure $cancellation,
        private readonly \Closure $report,
        /** Id of a task of a RemoteExecutor, the same in all attempts; null for tasks of other executors. */
        public readonly ?string $idempotencyKey = null,
    ) {}

    /**
     * Returns the context of the calling task.
     *
     * @throws \LogicException outside of a task
     */
    public static function current(): self
    {
        $fiber = \Fiber::getCurrent();

        return ($fiber === null ? null : self::$ofFibers[$fiber] ?? null)
            ?? self::$current
            ?? throw new \LogicException(
                'No task is running here. Call TaskContext::current() in a task, or check TaskContext::exists() before',
            );
    }

    public static function exists(): bool
    {
        return self::$current !== null || self::fiber() !== null;
    }

    /**
     * Returns a cancellation that is requested when the task is cancelled or exceeds its time limit.
     *
     * The task can pass the cancellation to its operations. In a {@see WorkerPool}, a task that has called this method
     * may run for {@see WorkerPoolOptions::$gracePeriod} more seconds after the request. A task that has not called
     * this method is ended immediately. In a thread, or without ext-pcntl, every task is ended immediately.
     */
    public function cancellation(): Cancellation
    {
        return ($this->cancellation)();
    }

    /**
     * Passes a value, such as the task's progress, to the executor's $onReport: {@see WorkerPoolOptions::$onReport}.
     *
     * @throws UnserializableException
     */
    public function report(mixed $value): void
    {
        ($this->report)($value);
    }

    /**
     * @internal
     *
     * @return \Fiber<mixed, mixed, mixed, mixed>|null the current fiber if it has a context of its own
     */
    public static function fiber(): ?\Fiber
    {
        $fiber = \Fiber::getCurrent();

        return $fiber !== null && isset(self::$ofFibers[$fiber]) ? $fiber : null;
    }

    /**
     * @internal
     *
     * @param \Fiber<mixed, mixed, mixed, mixed>|null $fiber fiber that runs the task; null for all fibers
     */
    public static function enter(?self $context, ?\Fiber $fiber = null): void
    {
        if ($fiber === null) {
            self::$current = $context;
        } elseif ($context !== null) {
            self::$ofFibers ??= new \WeakMap();
            self::$ofFibers[$fiber] = $context;
        }
    }
}
