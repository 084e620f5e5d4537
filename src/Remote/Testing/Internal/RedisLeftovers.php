<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing\Internal;

use Spindle\Internal\Testing\Removal;
use Spindle\Internal\Testing\TestServerState;

final class RedisLeftovers implements Removal
{
    /** Matches names of the server and its children (for snapshots and the append-only file), but not of clients. */
    private const PROGRAM_PATTERN = '(?:redis|valkey)-(?!cli|benchmark)[\w.-]+';

    /** Finds the server and its children by the directory in their command line, or by their working directory. */
    public static function of(string $directory): TestServerState
    {
        return new TestServerState($directory, self::PROGRAM_PATTERN);
    }

    public static function remove(string $directory): void
    {
        self::of($directory)->remove();
    }
}
