<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

/**
 * Ends a fork in such a way that PHP runs neither `finally` blocks of suspended fibers nor destructors, not even those
 * of objects that the fork has created.
 */
final class ForkEnd
{
    private function __construct() {}

    public function __destruct()
    {
        exit(''); // keeps the exit status, and makes PHP skip all other destructors
    }

    /** Called in a shutdown function. PHP destroys the newest global variable first: this object. */
    public static function skipDestructors(): void
    {
        $GLOBALS[self::class] ??= new self();
    }
}
