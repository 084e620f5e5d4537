<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Internal\Async\CancellationCallbacks;

/**
 * The cancellation of all attempts to connect of a pool. The end of this object requests nothing, because PHP may
 * destroy it before destructors of the application send the last requests.
 */
final class PoolKill implements Cancellation
{
    use CancellationCallbacks;

    public function request(): void
    {
        $this->requestWith($this->exception ?? new CancelledException());
    }
}
