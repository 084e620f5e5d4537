<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Internal\Async\CancellationCallbacks;

/**
 * A cancellation that ends all attempts of a pool to connect. Unlike Amp's DeferredCancellation, this object cancels
 * nothing when PHP destroys it. When PHP shuts down, this object may be destroyed before destructors of the application
 * send their last requests. These requests must still be able to connect.
 */
final class PoolKill implements Cancellation
{
    use CancellationCallbacks;

    public function request(): void
    {
        $this->requestWith($this->exception ?? new CancelledException());
    }
}
