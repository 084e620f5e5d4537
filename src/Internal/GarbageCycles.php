<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;

final class GarbageCycles
{
    /** Collects garbage cycles. Exceptions of destructors go to the error handler of the event loop. */
    public static function collect(): void
    {
        try {
            gc_collect_cycles();
            // @phpstan-ignore catch.neverThrown (a destructor may throw)
        } catch (\Throwable $thrown) {
            EventLoop::queue(static fn() => throw $thrown);
        }
    }
}
