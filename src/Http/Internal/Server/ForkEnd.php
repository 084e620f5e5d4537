<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

/**
 * Ends a fork without the code that PHP would run when it destroys fibers and other objects, also those of the fork:
 * `finally` blocks of waiting code, and destructors.
 */
final class ForkEnd
{
    private function __construct() {}

    public function __destruct()
    {
        exit(''); // keeps the exit status, and makes PHP skip all other destructors
    }

    /** Called in a shutdown function. PHP then calls the destructor of the newest global variable first. */
    public static function skipDestructors(): void
    {
        $GLOBALS[self::class] ??= new self();
    }
}
