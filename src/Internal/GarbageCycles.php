<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;

final class GarbageCycles
{
    private static int $nextAt = 0;

    /**
     * Collects garbage cycles, unless collections would take more than 1 % of the time. Exceptions of destructors go to
     * the error handler of the event loop.
     */
    public static function collect(): void
    {
        $start = hrtime(true);
        if ($start < self::$nextAt) {
            return;
        }
        try {
            gc_collect_cycles();
            // @phpstan-ignore catch.neverThrown (a destructor may throw)
        } catch (\FiberError) { // a destroyed fiber has waited in a `finally` block
            // @phpstan-ignore catch.neverThrown
        } catch (\Throwable $thrown) {
            EventLoop::queue(static fn() => throw $thrown);
        }
        $end = hrtime(true);
        self::$nextAt = $end + 100 * ($end - $start);
    }
}
