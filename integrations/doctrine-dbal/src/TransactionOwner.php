<?php

declare(strict_types=1);

namespace Spindle\Doctrine;

use Spindle\Internal\Async\CurrentFunction;

/** Identifies the fiber and the function that began a transaction. Only this function can use the transaction. */
final class TransactionOwner
{
    /** @var \Fiber<mixed, mixed, mixed, mixed>|null null outside of fibers */
    private readonly ?\Fiber $fiber;

    /** @var \WeakReference<\stdClass> function that began the transaction; the reference is empty once it has ended */
    private readonly \WeakReference $function;

    public function __construct()
    {
        $this->fiber = \Fiber::getCurrent();
        $this->function = \WeakReference::create(CurrentFunction::identity());
    }

    public function isCurrent(): bool
    {
        return $this->function->get() === CurrentFunction::identity();
    }

    public function hasEnded(): bool
    {
        return $this->fiber?->isTerminated() === true || $this->function->get() === null;
    }
}
