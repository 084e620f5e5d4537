<?php

declare(strict_types=1);

namespace Spindle\Internal;

final class Shutdown
{
    /**
     * A shutdown function can register another one, and PHP does not report which function is the last. So callAfter()
     * registers itself this number of times before it calls the callback.
     */
    private const MAX_DEPTH = 10;

    /** Calls a function at the end of the script, after the shutdown functions of the application. */
    public static function afterApplication(\Closure $callback): void
    {
        self::callAfter(self::MAX_DEPTH, $callback);
    }

    private static function callAfter(int $depth, \Closure $callback): void
    {
        // A function that a shutdown function registers runs after all that were registered before.
        $depth === 0 ? $callback() : register_shutdown_function(self::callAfter(...), $depth - 1, $callback);
    }
}
