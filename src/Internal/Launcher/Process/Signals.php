<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Sends signals where ext-posix may be missing. */
final class Signals
{
    public static function send(int $pid, int $signal): void
    {
        if (\function_exists('posix_kill')) {
            posix_kill($pid, $signal);

            return;
        }
        $null = ['file', '/dev/null', 'r+'];
        $shell = proc_open(['/bin/sh', '-c', "kill -{$signal} {$pid}"], [$null, $null, $null], $pipes);
        if ($shell !== false) {
            proc_close($shell);
        }
    }
}
