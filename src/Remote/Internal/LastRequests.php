<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

/** Has requests to an engine that must be sent before the process ends. */
interface LastRequests
{
    /**
     * Returns the unsent requests when the process ends. No request awaits its answer.
     *
     * @return list<\Closure(): mixed>
     */
    public function lastRequests(): array;
}
