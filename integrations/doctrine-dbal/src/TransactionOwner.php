<?php

declare(strict_types=1);

namespace Spindle\Doctrine;

use Revolt\EventLoop\FiberLocal;

/** Identifies the fiber and the function that began a transaction. Only this function can use the transaction. */
final class TransactionOwner
{
    /**
     * Contains a different object for each function that Revolt runs in a fiber.
     *
     * @var FiberLocal<\stdClass>|null
     */
    private static ?FiberLocal $currentTask = null;

    /** @var \Fiber<mixed, mixed, mixed, mixed>|null null outside of fibers */
    private readonly ?\Fiber $fiber;

    /**
     * Identifies the function that began the transaction, because Revolt runs several functions one after the other in
     * one fiber. The reference is empty once that function has ended.
     *
     * @var \WeakReference<\stdClass>
     */
    private readonly \WeakReference $task;

    public function __construct()
    {
        $this->fiber = \Fiber::getCurrent();
        $this->task = \WeakReference::create(self::currentTask());
    }

    public function isCurrent(): bool
    {
        return $this->task->get() === self::currentTask();
    }

    public function hasEnded(): bool
    {
        return $this->fiber?->isTerminated() === true || $this->task->get() === null;
    }

    private static function currentTask(): \stdClass
    {
        return (self::$currentTask ??= new FiberLocal(static fn(): \stdClass => new \stdClass()))->get();
    }
}
