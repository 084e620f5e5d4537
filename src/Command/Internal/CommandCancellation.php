<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Amp\Cancellation;

/**
 * Combines two cancellations of one command that a transport runs: the pool's and the caller's.
 *
 * When the caller cancels, Amp informs the pool only in a later turn of the event loop. If the script ends, there
 * is no later turn. So {@see isRequested()} also checks the caller's cancellation. The other methods use only the
 * pool's cancellation.
 */
final class CommandCancellation implements Cancellation
{
    public function __construct(private readonly Cancellation $byPool, private readonly ?Cancellation $byCaller) {}

    public function subscribe(\Closure $callback): string
    {
        return $this->byPool->subscribe($callback);
    }

    public function unsubscribe(string $id): void
    {
        $this->byPool->unsubscribe($id);
    }

    public function isRequested(): bool
    {
        return $this->byPool->isRequested() || $this->byCaller?->isRequested() === true;
    }

    public function throwIfRequested(): void
    {
        $this->byPool->throwIfRequested();
    }
}
