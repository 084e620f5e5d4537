<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

/** Removes temporary servers of one kind. The guardian process loads this class without Composer's autoloader. */
interface Removal
{
    /** Ends the server of the directory, whatever its state, and removes everything that belongs to the server. */
    public static function remove(string $directory): void;
}
