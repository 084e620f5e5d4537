<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

/** Has requests to an engine (Redis or Valkey) that must be sent before the process ends. */
interface LastRequests
{
    /**
     * Records which jobs the application has cancelled. Called after the application's shutdown functions, but before
     * destructors: the destructor of Amp's DeferredCancellation also cancels jobs that the application did not cancel.
     */
    public function noteCancellations(): void;

    /**
     * Returns the requests that are unsent when the process ends. Each closure sends requests and awaits no answer.
     *
     * @return list<\Closure(): mixed>
     */
    public function lastRequests(): array;
}
