<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

/** Removes servers of one kind. Can use only the classes that guardian.php loads: the guardian has no autoloader. */
interface Removal
{
    /** Ends the server of the directory, in whatever state it is, and removes everything that belongs to the server. */
    public static function remove(string $directory): void;
}
