<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

/** Suspends its fiber when it is serialized. */
final class SuspendingObject
{
    /** @return array<mixed> */
    public function __serialize(): array
    {
        \Fiber::suspend();

        return [];
    }
}
