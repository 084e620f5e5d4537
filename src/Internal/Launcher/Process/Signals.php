<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Sends signals, also without ext-posix. */
final class Signals
{
    /** Returns false when the process does not exist, or when this process may not signal it. */
    public static function send(int $pid, int $signal): bool
    {
        if (\function_exists('posix_kill')) {
            return posix_kill($pid, $signal);
        }
        $null = ['file', '/dev/null', 'r+'];
        $shell = proc_open(['/bin/sh', '-c', "kill -{$signal} {$pid}"], [$null, $null, $null], $pipes);

        return $shell !== false && proc_close($shell) === 0;
    }
}
