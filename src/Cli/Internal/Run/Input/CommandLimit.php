<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** The largest size of a command that the system runs: execve(2), "Limits on size of arguments and environment". */
final class CommandLimit
{
    /** Largest size of one argument, such as the line of a shell, with the byte for its end: MAX_ARG_STRLEN. */
    public const ARGUMENT_BYTES = 1 << 17;

    /**
     * Size up to which a command gets further values: that of xargs, and twice that of GNU parallel. Larger commands
     * need more memory in each process that they pass through, and are not faster.
     */
    public const PACKED_BYTES = 1 << 17;

    /** Largest and smallest size of arguments and environment, whatever the limit of the stack is. */
    private const MAX_BYTES = 6 << 20;
    private const MIN_BYTES = 1 << 17;

    /** Bytes left free, as by xargs. POSIX asks for it: a program may add to its environment. */
    private const HEADROOM_BYTES = 2048;

    /** Bytes of the name, the auxiliary vector and the variable that a launcher adds. */
    private const OWN_BYTES = 1024;

    private const POINTER_BYTES = 8;

    private function __construct() {}

    /** Returns the limit for the words of a command, with a byte and a pointer for each. */
    public static function bytes(): int
    {
        $limits = \function_exists('posix_getrlimit') ? posix_getrlimit() : [];
        $stack = \is_array($limits) ? $limits['soft stack'] ?? 'unlimited' : 'unlimited';
        $total = \is_int($stack) ? max(self::MIN_BYTES, min(intdiv($stack, 4), self::MAX_BYTES)) : self::MIN_BYTES;
        $environment = 0;
        foreach (getenv() as $name => $value) {
            $environment += \strlen("{$name}={$value}") + 1 + self::POINTER_BYTES;
        }

        return max(self::HEADROOM_BYTES, $total - $environment - self::HEADROOM_BYTES - self::OWN_BYTES);
    }
}
