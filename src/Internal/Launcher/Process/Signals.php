<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Sends signals. Without ext-posix, a shell sends them. */
final class Signals
{
    /** Sends a signal. Returns false if the process does not exist, or if this process is not allowed to signal it. */
    public static function send(int $pid, int $signal): bool
    {
        if (\function_exists('posix_kill')) {
            return posix_kill($pid, $signal);
        }
        $null = ['null'];
        $shell = proc_open(['/bin/sh', '-c', "kill -{$signal} {$pid}"], [$null, $null, $null], $pipes);

        return $shell !== false && proc_close($shell) === 0;
    }
}
