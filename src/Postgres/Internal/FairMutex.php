<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Spindle\Internal\Async\CurrentFunction;
use Spindle\Internal\Async\FiberQueue;

/** A mutex for fibers, first come first served. acquire() throws if the calling function is known to hold it. */
final class FairMutex
{
    /** Only this class writes the property. */
    public bool $isLocked = false;

    /** @var \WeakReference<\stdClass>|null function that holds the mutex; null if any function may release it */
    private ?\WeakReference $holder = null;

    /** Why no fiber may wait for the mutex; null until {@see end()}. */
    private ?\Throwable $endReason = null;

    private readonly FiberQueue $waiting;

    /**
     * @param string $busy beginning of the exception's message: a clause with the reason why the mutex is locked
     * @param string $advice end of the exception's message: a sentence that says what to do; '' for none
     * @param Session|null $session session whose end calls {@see end()}
     */
    public function __construct(
        private readonly string $busy,
        private readonly string $advice = '',
        private readonly ?Session $session = null,
    ) {
        $this->waiting = new FiberQueue();
    }

    /** Suspends until the mutex is released, and locks the mutex. A cancelled call does not lock the mutex. */
    public function acquire(?Cancellation $cancellation = null): void
    {
        $cancellation?->throwIfRequested();
        if ($this->isLocked) {
            if ($this->isMine()) {
                throw new \LogicException(
                    "{$this->busy}, so this fiber would wait for itself" . rtrim(". {$this->advice}", '. '),
                );
            }
            $this->wait($cancellation);
        }
        $this->isLocked = true;
        $this->holder = \WeakReference::create(CurrentFunction::identity());
    }

    /** Makes {@see acquire()} throw in all fibers that wait, now or later. The holder keeps the mutex. */
    public function end(\Throwable $reason): void
    {
        $this->endReason ??= $reason;
        $this->waiting->failAll($this->endReason);
    }

    public function isMine(): bool
    {
        return $this->isLocked && $this->holder?->get() === CurrentFunction::identity();
    }

    /** Declares that any fiber may release the mutex. Then acquire() waits even in the function that locked it. */
    public function forgetHolder(): void
    {
        $this->holder = null;
    }

    /** Passes the mutex to the fiber that has waited longest, or unlocks the mutex if no fiber is waiting. */
    public function release(): void
    {
        // The mutex stays locked for the resumed fiber, so that no other fiber can lock it first.
        $this->holder = null;
        if (!$this->waiting->wakeFirst()) {
            $this->isLocked = false;
        }
    }

    private function wait(?Cancellation $cancellation): void
    {
        // Only a wait registers the mutex, because most transactions end without a wait.
        $this->session?->endWaitsFor($this);
        try {
            $this->endReason === null
                ? $this->waiting->wait($cancellation, $this->release(...))
                : throw $this->endReason;
        } catch (\Throwable $failure) {
            throw $failure === $this->endReason ? CallerTrace::of($failure) : $failure;
        }
    }
}
