<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Internal\Launcher\Process\Libc;
use Spindle\Internal\Warnings;

/** Marks sockets as close-on-exec. Forks by handlers inherit such sockets, but programs that handlers start do not. */
final class CloseOnExec
{
    /** @see https://man7.org/linux/man-pages/man2/fcntl.2.html */
    private const F_SETFD = 2;
    private const FD_CLOEXEC = 1;

    private function __construct() {}

    /**
     * Sets the flag through FFI, because PHP has no function for it. Does nothing without FFI or /proc.
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
            // PHP's setting ffi.enable does not allow FFI.
        }
    }

    /**
     * Returns the descriptor's number, found through /proc. PHP has no function for it.
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
            // readlink() fails for ".", ".." and the descriptor of scandir(), which is closed now
            foreach ((array) scandir('/proc/self/fd') as $number) {
                if (readlink("/proc/self/fd/{$number}") === $wanted) {
                    return (int) $number;
                }
            }

            return null;
        });

        return $found;
    }
}
