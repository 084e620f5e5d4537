<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

interface InputConsumer
{
    /** Returns how many values may be read before the next call of this method; 0 while none may be read. */
    public function room(): int;

    /**
     * Receives values in the order of the input, at most as many as {@see room()} has returned. If this method throws,
     * the pump stops reading, and the exception becomes {@see InputPump::$failure}.
     *
     * @param non-empty-list<mixed> $keys
     * @param non-empty-list<mixed> $values integers or strings; only the last value can have another type, because the
     *     pump passes on a value of another type immediately
     */
    public function onValues(array $keys, array $values): void;

    /**
     * Called when code of the input has suspended its fiber for a turn of the event loop. After that, the pump also
     * calls this method after each value, until it calls {@see onPaused()}.
     */
    public function onSuspended(): void;

    /**
     * Called when the pump stops reading in a callback of the event loop: there is no more room, the time of the
     * callback is over, or the input has ended. This method may suspend. Before its return, the pump reads nothing.
     */
    public function onPaused(): void;
}
