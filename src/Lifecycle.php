<?php

declare(strict_types=1);

namespace Spindle;

use Amp\Cancellation;
use Amp\CancelledException;

/**
 * The end of a pool, server, agent or connection. Both methods are final: the object accepts no work afterwards. Both
 * may be called again, also one after the other.
 */
interface Lifecycle
{
    /**
     * Refuses new work, finishes accepted work, waits until it has ended, and releases everything.
     *
     * A second call waits as well. Suspends only the calling fiber.
     *
     * Cancellation: the rest of the work ends as by {@see self::kill()}. Then CancelledException is thrown.
     *
     * @throws CancelledException
     */
    public function close(?Cancellation $cancellation = null): void;

    /**
     * Ends all work now, and releases everything. Each unit of work gets an outcome, usually an exception which says
     * that the object was killed. Ends the wait of {@see self::close()}.
     */
    public function kill(): void;
}
