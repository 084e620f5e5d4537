<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

/** Has requests to an engine that must be sent before the process ends. */
interface LastRequests
{
    /**
     * Notes what the application has cancelled. Called after its shutdown functions, and before its destructors: the
     * destructor of Amp's DeferredCancellation requests the cancellation.
     */
    public function noteCancellations(): void;

    /**
     * Returns the unsent requests when the process ends. No request awaits its answer.
     *
     * @return list<\Closure(): mixed>
     */
    public function lastRequests(): array;
}
