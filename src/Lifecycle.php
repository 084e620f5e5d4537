<?php

declare(strict_types=1);

namespace Spindle;

use Amp\Cancellation;
use Amp\CancelledException;

/**
 * Ends a pool, server, agent or connection. After a call of either method, the object accepts no work. The methods may
 * be called several times, in any order.
 */
interface Lifecycle
{
    /**
     * Refuses new work, waits until all accepted work is finished, and releases everything.
     *
     * A second call also waits. Only the calling fiber is suspended.
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
