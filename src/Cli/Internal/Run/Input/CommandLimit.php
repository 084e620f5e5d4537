<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Internal\Launcher\Environment;
use Spindle\Internal\Launcher\Process\ArgumentSize;

/** The largest size of a command that the system runs: see execve(2), "Limits on size of arguments and environment". */
final class CommandLimit
{
    /** Largest size of one argument, such as a shell line, including the NUL byte at its end: MAX_ARG_STRLEN. */
    public const ARGUMENT_BYTES = 1 << 17;

    /**
     * Default limit, in bytes, for a command with several records: the same as in xargs, twice as much as in GNU
     * parallel. Larger commands are not faster, and need more memory in each process that receives them.
     */
    public const PACKED_BYTES = 1 << 17;

    /** Bytes that a command leaves free, so that its program can add variables to the environment: see POSIX xargs. */
    private const HEADROOM_BYTES = 2048;

    /** Bytes for the program's name, the auxiliary vector and the environment variable that a launcher adds. */
    private const OWN_BYTES = 1024;

    private const POINTER_BYTES = 8;

    /** Returns the largest size of a line that `/bin/sh -c --` runs, in bytes, including the NUL byte at its end. */
    public static function shellLineBytes(): int
    {
        $otherBytes = array_sum(array_map(\strlen(...), ['/bin/sh', '-c', '--'])) + 3 + 4 * self::POINTER_BYTES;

        return min(self::ARGUMENT_BYTES, self::bytes() - $otherBytes);
    }

    /** Returns the largest size of a command in bytes: its words, each with a NUL byte and a pointer to the word. */
    public static function bytes(): int
    {
        $total = max(ArgumentSize::MIN_TOTAL_BYTES, ArgumentSize::totalBytes() ?? 0);
        $environment = 0;
        foreach (Environment::variables() as $name => $value) {
            $environment += \strlen("{$name}={$value}") + 1 + self::POINTER_BYTES;
        }

        return max(self::HEADROOM_BYTES, $total - $environment - self::HEADROOM_BYTES - self::OWN_BYTES);
    }
}
