<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** What `spindle` exits with, beside 1 to 100 for so many failed jobs. */
final class ExitStatus
{
    public const OK = 0;
    public const MORE_THAN_100_FAILED = 101;
    public const INTERRUPTED = 130;
    public const BROKEN_PIPE = 141;
    public const TERMINATED = 143;

    /** The broker refuses, or would lose jobs: to start again does not help. */
    public const REFUSED = 253;

    /** Spindle itself failed, not a job: the launcher died, an output or the job log could not be written. */
    public const TROUBLE = 254;

    /** Bad options, or input that can't be read. */
    public const USAGE = 255;

    private function __construct() {}

    public static function ofFailures(int $failed): int
    {
        return min($failed, self::MORE_THAN_100_FAILED);
    }
}
