<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

/** Suspends its fiber in the method of the old interface for serialization. */
// @phpstan-ignore class.serializable, class.serializable (the deprecated interface is still supported)
final class SuspendingSerializable implements \Serializable
{
    /** @var \Fiber<mixed, mixed, mixed, mixed>|null fiber that is suspended */
    public ?\Fiber $fiber = null;

    public function serialize(): string
    {
        $this->fiber = \Fiber::getCurrent();
        \Fiber::suspend();

        return '';
    }

    public function unserialize(string $data): void {}
}
