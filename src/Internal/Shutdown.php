<?php

declare(strict_types=1);

namespace Spindle\Internal;

final class Shutdown
{
    private function __construct() {}

    /** Calls a function at the end of the script, after the shutdown functions of the application. */
    public static function afterApplication(\Closure $callback): void
    {
        // A function that a shutdown function registers runs after all that were registered before.
        register_shutdown_function(static fn() => register_shutdown_function($callback));
    }
}
