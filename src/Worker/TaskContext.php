<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Amp\Cancellation;

/** What a task that runs can ask for. */
final class TaskContext
{
    private static ?self $current = null;

    /** @var \WeakMap<\Fiber<mixed, mixed, mixed, mixed>, self>|null where tasks run in fibers of one process */
    private static ?\WeakMap $ofFibers = null;

    /**
     * @internal
     *
     * @param \Closure(): Cancellation $cancellation
     * @param \Closure(mixed): void    $report
     */
    public function __construct(
        /** 1 at first; more when the task is tried again. */
        public readonly int $attempt,
        private readonly \Closure $cancellation,
        private readonly \Closure $report,
        /** The same for each attempt at this task, and for no other task; null where tasks have none, as in a {@see WorkerPool}. */
        public readonly ?string $idempotencyKey = null,
    ) {}

    /**
     * That of the task which calls this.
     *
     * @throws \LogicException outside of a task
     */
    public static function current(): self
    {
        $fiber = \Fiber::getCurrent();

        return ($fiber === null ? null : self::$ofFibers[$fiber] ?? null)
            ?? self::$current
            ?? throw new \LogicException('There is no task here: ask for its context inside of one, or see TaskContext::isThere()');
    }

    public static function isThere(): bool
    {
        $fiber = \Fiber::getCurrent();

        return self::$current !== null || ($fiber !== null && isset(self::$ofFibers[$fiber]));
    }

    /**
     * Requested when the task is to end: it has been cancelled, or has run for too long. A task that asks for this has
     * the pool's grace to end by itself, and can hand it to whatever it waits for. One that does not ask is ended at once,
     * and so is any where ext-pcntl is missing, and in a thread.
     */
    public function cancellation(): Cancellation
    {
        return ($this->cancellation)();
    }

    /**
     * Tells the pool's owner something, such as how far the task is: {@see WorkerPoolOptions::$onReport} gets it.
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
     * @param \Fiber<mixed, mixed, mixed, mixed>|null $fiber null for the whole process
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
