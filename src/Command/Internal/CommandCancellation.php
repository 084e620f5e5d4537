<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Amp\Cancellation;

/**
 * Ends one command of a transport. {@see isRequested()} also asks the caller's cancellation, because Amp informs the
 * pool only in a later turn of the event loop. A script that ends has no later turn. Callbacks and
 * {@see throwIfRequested()} react only to the pool's cancellation.
 */
final class CommandCancellation implements Cancellation
{
    public function __construct(
        private readonly Cancellation $byPool,
        private readonly ?Cancellation $byCaller,
    ) {}

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
