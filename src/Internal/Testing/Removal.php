<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

/** Called by the guardian, in a process without Composer's autoloader. */
interface Removal
{
    /** Ends the server of the directory, whatever its state is, and removes everything that belongs to it. */
    public static function remove(string $directory): void;
}
