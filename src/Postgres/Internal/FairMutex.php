<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Spindle\Internal\Async\FiberQueue;

/** A mutex for fibers, first come first served. A fiber that is known to hold it gets an exception, and never waits. */
final class FairMutex
{
    /** Only this class writes the property. */
    public bool $isLocked = false;

    /** Whether {@see $fiber} is known to be the holder. If not, every fiber waits for the release of the mutex. */
    private bool $hasKnownHolder = false;

    /** @var \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null the holder's fiber; null also for {main} */
    private ?\WeakReference $fiber = null;

    private readonly FiberQueue $waiting;

    /**
     * @param string $busy clause that says why the mutex is locked, for the message to a fiber that already holds it
     * @param string $advice sentence that says what to do, for the end of the message; '' for none
     */
    public function __construct(private readonly string $busy, private readonly string $advice = '')
    {
        $this->waiting = new FiberQueue();
    }

    /**
     * Suspends until the mutex is released, and locks it. A cancelled call does not lock it.
     *
     * @throws \LogicException when the calling fiber is known to hold the mutex
     */
    public function acquire(?Cancellation $cancellation = null): void
    {
        $cancellation?->throwIfRequested();
        if ($this->isLocked) {
            if ($this->isMine()) {
                throw new \LogicException(
                    "{$this->busy}, so this fiber would wait for itself" . rtrim(". {$this->advice}", '. '),
                );
            }
            $this->waiting->wait($cancellation, $this->release(...));
        }
        $this->isLocked = $this->hasKnownHolder = true;
        $fiber = \Fiber::getCurrent();
        /** @var \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null $weak */
        $weak = $fiber === null ? null : \WeakReference::create($fiber);
        $this->fiber = $weak;
    }

    /** Whether the calling fiber is known to hold the mutex. */
    public function isMine(): bool
    {
        return $this->isLocked && $this->hasKnownHolder && $this->fiber?->get() === \Fiber::getCurrent();
    }

    /** Declares that another fiber will release the mutex, so that the fiber that locked it may call acquire(). */
    public function forgetHolder(): void
    {
        $this->hasKnownHolder = false;
    }

    /** Passes the mutex to the fiber that has waited longest; unlocks it when no fiber is waiting. */
    public function release(): void
    {
        // The mutex stays locked, so that no other fiber can lock it before the fiber that is resumed here.
        $this->hasKnownHolder = false;
        if (!$this->waiting->wakeFirst()) {
            $this->isLocked = false;
        }
    }
}
