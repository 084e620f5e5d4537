<?php

declare(strict_types=1);

namespace Spindle;

use Amp\Cancellation;
use Amp\CancelledException;

/**
 * The end of a pool, server, agent or connection. Both methods are final: the object accepts no work afterwards. They
 * may be called several times and in any order.
 */
interface Lifecycle
{
    /**
     * Refuses new work, finishes accepted work, waits until it has ended, and releases everything.
     *
     * A second call waits as well. Suspends only the calling fiber.
     *
     * Cancellation: ends the remaining work as {@see self::kill()} does, and throws CancelledException.
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
