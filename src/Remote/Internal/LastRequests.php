<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

/** Has requests to an engine (Redis or Valkey) that must be sent before the process ends. */
interface LastRequests
{
    /**
     * Records which jobs the application has cancelled. Called after its shutdown functions and before its destructors:
     * the destructor of Amp's DeferredCancellation requests a cancellation that the application may not want.
     */
    public function noteCancellations(): void;

    /**
     * Returns the unsent requests, when the process ends. Each closure sends a request, and does not await the answer.
     *
     * @return list<\Closure(): mixed>
     */
    public function lastRequests(): array;
}
