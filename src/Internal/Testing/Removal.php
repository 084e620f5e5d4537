<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

/** Removes a kind of temporary server. The guardian calls it in a process without Composer's autoloader. */
interface Removal
{
    /** Ends the server of the directory in any state, and removes everything that belongs to the server. */
    public static function remove(string $directory): void;
}
