<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;

/** A mutex for fibers, first come first served. A fiber that would wait for itself gets an exception. */
final class FairMutex
{
    /** Must not be changed from outside. */
    public bool $isLocked = false;

    /** Whether the holder is known, so that a wait for itself is detected. */
    private bool $hasKnownHolder = false;

    /** @var \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null the holder's fiber; null also for {main} */
    private ?\WeakReference $fiber = null;

    private readonly WaitingCallers $waiting;

    /** @param string $resource name of the resource, for the message of a wait that can't end */
    public function __construct(private readonly string $resource)
    {
        $this->waiting = new WaitingCallers();
    }

    /**
     * Suspends until the turn is free. A cancelled call takes nothing.
     *
     * @throws \LogicException when the calling fiber already has the turn
     */
    public function acquire(?Cancellation $cancellation = null): void
    {
        $cancellation?->throwIfRequested();
        if ($this->isLocked) {
            if ($this->isMine()) {
                throw new \LogicException("{$this->resource}: this fiber would wait for itself");
            }
            $this->waiting->wait($cancellation, $this->release(...));
        }
        $this->isLocked = $this->hasKnownHolder = true;
        $fiber = \Fiber::getCurrent();
        /** @var \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null $weak */
        $weak = $fiber === null ? null : \WeakReference::create($fiber);
        $this->fiber = $weak;
    }

    /** Whether the calling fiber has the turn. */
    public function isMine(): bool
    {
        return $this->isLocked && $this->hasKnownHolder && $this->fiber?->get() === \Fiber::getCurrent();
    }

    /** Declares that another fiber gives the turn back, so that the holder may wait for it. */
    public function handOver(): void
    {
        $this->hasKnownHolder = false;
    }

    /** Passes the turn to the fiber that has waited longest. */
    public function release(): void
    {
        // The turn stays taken, so that a newcomer can't overtake the fiber that is resumed here.
        $this->hasKnownHolder = false;
        if (!$this->waiting->wakeFirst()) {
            $this->isLocked = false;
        }
    }
}
