<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing\Internal;

use Spindle\Internal\Testing\Removal;
use Spindle\Internal\Testing\TestServerState;

final class RedisLeftovers implements Removal
{
    /** Matches the process names of the server and of its children (for snapshots and the append-only file). */
    private const PROGRAM_PATTERN = '(?:redis|valkey)-(?!cli|benchmark)[\w.-]+';

    /** Finds the server by the directory in its command line, and the server's children by their working directory. */
    public static function of(string $directory): TestServerState
    {
        return new TestServerState($directory, self::PROGRAM_PATTERN);
    }

    public static function remove(string $directory): void
    {
        self::of($directory)->remove();
    }
}
