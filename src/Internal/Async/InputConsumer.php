<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

/** Receives the values that an {@see InputPump} reads. */
interface InputConsumer
{
    /** Returns how many values may be read before the next call; 0 while none may be read. */
    public function room(): int;

    /**
     * Receives values in the order of the input, at most as many as {@see room()} has returned. An exception ends the
     * input, and becomes its failure.
     *
     * @param non-empty-list<mixed> $keys
     * @param non-empty-list<mixed> $values all but the last are integers or strings
     */
    public function onValues(array $keys, array $values): void;

    /**
     * Called when the input has suspended its fiber for a turn of the event loop, and then after each value, until
     * {@see onPaused()} is called.
     */
    public function onSuspended(): void;

    /**
     * Called when no more is read in this callback of the event loop: there is no room, its time is over, or the input
     * is over. May suspend. Nothing is read before it has returned.
     */
    public function onPaused(): void;
}
