<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;

final class GarbageCycles
{
    /** End and duration of the last collection, in nanoseconds of hrtime(). */
    private static int $endedAt = 0;
    private static int $took = 0;

    /**
     * Calls {@see destroy()}, unless the last collection ended less than $maxPause seconds ago and collections would
     * take more than 1 % of the time. An exception goes to the error handler of the event loop.
     */
    public static function collect(float $maxPause): void
    {
        $start = (int) hrtime(true);
        if ($start - self::$endedAt < min(100 * self::$took, $maxPause * 1e9)) {
            return;
        }
        $thrown = self::destroy();
        $thrown === null ? null : EventLoop::queue(static fn() => throw $thrown);
        self::$endedAt = (int) hrtime(true);
        self::$took = self::$endedAt - $start;
    }

    /** Destroys all garbage cycles, and returns an exception of their destructors. */
    public static function destroy(): ?\Throwable
    {
        try {
            gc_collect_cycles();
            // @phpstan-ignore catch.neverThrown (a destructor may throw)
        } catch (\Throwable $thrown) {
            while ($thrown instanceof \FiberError) { // a destroyed fiber tried to wait in a `finally` block
                $thrown = $thrown->getPrevious(); // null, or the exception of an earlier destructor
            }

            return $thrown;
        }

        return null;
    }
}
