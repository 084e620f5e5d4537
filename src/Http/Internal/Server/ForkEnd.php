<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Internal\Network\ForkedSockets;

/**
 * Ends a fork without the code that PHP would run when it destroys fibers and other objects of the parent process:
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
        ForkedSockets::detachTls(); // as the skipped destructors of clients do
        $GLOBALS[self::class] ??= new self();
    }
}
