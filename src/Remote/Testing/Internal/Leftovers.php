<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing\Internal;

use Spindle\Internal\Testing\Remains;
use Spindle\Internal\Testing\Removal;

/** What there is of a temporary Redis outside of this process. */
final class Leftovers implements Removal
{
    /** Also the children that write snapshots and rewrite the append-only file, whose names begin alike. */
    private const PROGRAMS = '(?:redis|valkey)-(?!cli|benchmark)[\w.-]+';

    /** The server has the directory's name in its command line, its children have their working directory there. */
    public static function of(string $directory): Remains
    {
        return new Remains($directory, self::PROGRAMS);
    }

    public static function remove(string $directory): void
    {
        self::of($directory)->remove();
    }
}
