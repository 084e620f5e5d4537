<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Internal\Launcher\Process\Libc;
use Spindle\Internal\Warnings;

/** Keeps a socket from the programs that handlers start, which would have it for as long as they run; forks still have it. */
final class CloseOnExec
{
    /** @see https://man7.org/linux/man-pages/man2/fcntl.2.html */
    private const F_SETFD = 2;
    private const FD_CLOEXEC = 1;

    private function __construct() {}

    /**
     * Without FFI, or where there is no /proc, nothing happens: PHP itself can't do it.
     *
     * @param resource $socket
     */
    public static function set($socket): void
    {
        $descriptor = \extension_loaded('FFI') ? self::descriptor($socket) : null;
        if ($descriptor === null) {
            return;
        }
        try {
            (new Libc())->functions->fcntl($descriptor, self::F_SETFD, self::FD_CLOEXEC);
        } catch (\FFI\Exception) {
            // Not allowed here.
        }
    }

    /**
     * PHP does not tell the number.
     *
     * @param resource $socket
     */
    private static function descriptor($socket): ?int
    {
        $status = fstat($socket);
        if ($status === false) {
            return null;
        }
        $wanted = "socket:[{$status['ino']}]";
        [$found] = Warnings::of(static function () use ($wanted): ?int {
            foreach ((array) scandir('/proc/self/fd') as $number) { // one of which was that of the folder, and is gone
                if (readlink("/proc/self/fd/{$number}") === $wanted) {
                    return (int) $number;
                }
            }

            return null;
        });

        return $found;
    }
}
