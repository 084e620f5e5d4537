<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

/** What the guardian calls, in a process without Composer's autoloader. */
interface Removal
{
    /** Ends the server of the directory, in whatever state it is, and removes all that there is of it. */
    public static function remove(string $directory): void;
}
