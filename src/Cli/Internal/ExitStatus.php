<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** Exit statuses of `spindle`. A status from 1 to 100 is the number of failed jobs. */
final class ExitStatus
{
    public const OK = 0;
    public const MORE_THAN_100_FAILED = 101;
    public const INTERRUPTED = 130;
    public const BROKEN_PIPE = 141;
    public const TERMINATED = 143;

    /** The engine refused a request, or has settings that could lose jobs. The same command would fail again. */
    public const REFUSED = 253;

    /** Spindle itself failed, not a job. For example, the launcher died, or an output could not be written. */
    public const TROUBLE = 254;

    /** Invalid options, or input that can't be read. */
    public const USAGE = 255;

    public static function ofFailures(int $failed): int
    {
        return min($failed, self::MORE_THAN_100_FAILED);
    }
}
