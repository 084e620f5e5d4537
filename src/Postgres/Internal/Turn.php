<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;

/** One at a time, first come first served. Whoever waits for itself is told so. */
final class Turn
{
    /** Only read by others. */
    public bool $taken = false;

    /** Whether who has it is known, so that it can be told that it waits for itself. */
    private bool $owned = false;

    /** @var \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null of who has it; null for {main} too */
    private ?\WeakReference $fiber = null;

    private readonly WaitingLine $line;

    /** @param string $holder what may hold it, for the one who waits in vain */
    public function __construct(private readonly string $holder)
    {
        $this->line = new WaitingLine();
    }

    /**
     * A call that is cancelled takes nothing.
     *
     * @throws \LogicException when the fiber that calls has it already
     */
    public function take(?Cancellation $cancellation = null): void
    {
        $cancellation?->throwIfRequested();
        if ($this->taken) {
            if ($this->isMine()) {
                throw new \LogicException("{$this->holder}: this fiber waits for itself");
            }
            $this->line->wait($cancellation, $this->give(...));
        }
        $this->taken = $this->owned = true;
        $fiber = \Fiber::getCurrent();
        /** @var \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null $weak */
        $weak = $fiber === null ? null : \WeakReference::create($fiber);
        $this->fiber = $weak;
    }

    /** Whether the fiber that calls has it. */
    public function isMine(): bool
    {
        return $this->taken && $this->owned && $this->fiber?->get() === \Fiber::getCurrent();
    }

    /** Somebody else gives it back, so that who has it may wait for it. */
    public function handOver(): void
    {
        $this->owned = false;
    }

    /** To whoever has waited longest. */
    public function give(): void
    {
        // Taken throughout: whoever comes before the one that is resumed here runs has to wait behind it.
        $this->owned = false;
        if (!$this->line->wakeFirst()) {
            $this->taken = false;
        }
    }
}
